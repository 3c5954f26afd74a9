/**
 * Goal: the compiled doctor finds each fault that can be made on this machine, and names nothing
 * else. Method: one stopped installation with documents, a stored file, a secret and a log, which
 * is restored after each fault. Faults of the kernel, the clock and PostgreSQL that cannot be made
 * here are readings in src/server/doctor/checks.test.ts, which has one for every check.
 *
 * @module-tag slow
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { postgresPooler } from '../../testing/databases/postgres-pooler.ts'
import { type Application, application, mutation } from '../application.ts'
import { argv } from '../argv.ts'
import { type Environment, productEnvironment, run, SERVER } from '../harness.ts'
import { writeEntries } from '../restarts/entries.ts'
import { BACKUP_FAULTS } from './doctor-backup-faults.ts'
import { LINUX_FAULTS, MACHINE_FAULTS, ROOT_FAULTS, SETTINGS_FAULTS } from './doctor-faults.ts'
import { type Effect, type Fault, mountSmall, type Site } from './doctor-site.ts'
import { DATABASE_FAULTS, STORE_FAULTS } from './doctor-store-faults.ts'

interface Check {
  readonly name: string
  readonly status: string
  readonly seen: string
  readonly command: string | null
}

let app: Application
let site: Site
let settings: Environment
let databaseUrl: string
let client: Client
/** Checks that are red on this machine without a fault, such as its small disk. */
let usual: Readonly<Record<string, string>>

beforeAll(async () => {
  app = await application(writeEntries)
  const { installation } = app
  const { directory, productRoot: root, environment } = installation
  for (let number = 0; number < 5; number++) {
    const given = { number: { type: 'int64', value: String(number) } }
    const added = await mutation(app, { function: 'entries.add', arguments: given })
    expect(added.status).toBe(200)
  }
  const content = join(directory, 'content')
  writeFileSync(content, 'the content of a file')
  await app.svc(argv`files put ${content} --key content --root ${root}`)
  const secret = argv`config set API_KEY --secret --value-env VALUE --root ${root}`
  await app.svc(secret, { VALUE: 'a secret' })
  await app.server.stop()
  databaseUrl = readFileSync(environment.SERVICE_IDENTITY_DATABASE_URL_FILE!, 'utf8')
  client = new Client({ connectionString: databaseUrl, application_name: 'faults' })
  await client.connect()
  site = {
    directory,
    root,
    state: environment.SERVICE_STATE_DIRECTORY!,
    pepper: environment.SERVICE_PLATFORM_IDENTITY_PEPPER_FILE!,
    query: (statement) => client.query(statement),
  }
  settings = { ...environment, ...productEnvironment(installation) }
  for (const path of [site.root, site.state]) execFileSync('cp', ['-a', path, `${path}.whole`])
  usual = redOf((await examine()).checks)
})

afterAll(async () => {
  await client?.end()
  await app?.installation.dispose()
})

async function examine({ settings: extra, command = [SERVER] }: Effect = {}) {
  const environment = { ...settings, ...extra }
  const { stdout, stderr, status } = await run(argv`${command} doctor --json`, { environment })
  expect(stderr).toBe('')
  const checks: readonly Check[] = JSON.parse(stdout).checks
  return { checks, exit: status, stdout }
}

function redOf(checks: readonly Check[]): Record<string, string> {
  const red = checks.filter(({ status }) => status === 'warning' || status === 'failed')
  return Object.fromEntries(red.map(({ name, status }) => [name, status]))
}

function restore(): void {
  for (const path of [site.root, site.state]) {
    rmSync(path, { recursive: true })
    execFileSync('cp', ['-a', `${path}.whole`, path])
  }
}

/** Examines the installation with an effect: nothing but `red` may differ from the usual. */
async function expectRed(red: Fault['red'], effect: Effect): Promise<readonly Check[]> {
  const { checks, exit, stdout } = await examine(effect)
  const expected = Object.entries({ ...usual, ...red }).filter(([, status]) => status !== 'ok')
  expect({ ...redOf(checks) }).toEqual(Object.fromEntries(expected))
  expect(exit).toBe(expected.some(([, status]) => status === 'failed') ? 4 : 0)
  for (const { name, command, seen } of checks) {
    if (red[name] !== undefined && red[name] !== 'ok')
      expect([name, seen, command]).toEqual([name, seen, expect.any(String)])
  }
  expect(stdout).not.toContain(readFileSync(site.pepper, 'utf8'))
  expect(stdout).not.toContain(new URL(databaseUrl).password)
  return checks.filter(({ name }) => red[name] !== undefined)
}

describe.each([
  ['settings', SETTINGS_FAULTS],
  ['machine', process.platform === 'linux' ? [...LINUX_FAULTS, ...MACHINE_FAULTS] : MACHINE_FAULTS],
  ['root', ROOT_FAULTS],
  ['stores', STORE_FAULTS],
  ['backups', BACKUP_FAULTS],
  ['database', DATABASE_FAULTS],
] as const)('a fault of the %s', (_, faults) => {
  test.each(faults)('$name', async ({ inject, red }) => {
    const effect = (await inject(site)) ?? {}
    onTestFinished(async () => {
      await effect.heal?.()
      restore()
    })
    await expectRed(red, effect)
  })
})

test('settings that cannot be read are the one failure', async () => {
  const { checks, exit } = await examine({ settings: { SERVICE_MEMORY_TARGET: 'much' } })
  expect(exit).toBe(4)
  expect(redOf(checks)).toEqual({ 'settings-valid': 'failed' })
  const { seen } = checks.find(({ name }) => name === 'settings-valid')!
  expect(seen).toContain('SERVICE_MEMORY_TARGET')
  expect(seen).not.toContain('much')
})

test.each(['management', 'application'])(
  'another program on the %s address is found',
  async (surface) => {
    const address =
      surface === 'management'
        ? settings.SERVICE_MANAGEMENT_LISTEN!
        : settings.SERVICE_APPLICATION_LISTEN!
    const [host, port] = address.split(':')
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(Number(port), host, resolve))
    onTestFinished(() => void other.close())
    const [found] = await expectRed({ [`listener-${surface}`]: 'failed' }, {})
    expect(found!.command).toBe(`ss -ltnp 'sport = :${port}'`)
  },
)

test('a database that cannot be reached, and a wrong password, are found', async () => {
  const closed = new URL(databaseUrl)
  closed.port = '1'
  const wrong = new URL(databaseUrl)
  wrong.password = 'sesame'
  for (const { href } of [closed, wrong]) {
    const path = join(site.directory, 'other-url')
    writeFileSync(path, href, { mode: 0o600 })
    const extra = { SERVICE_IDENTITY_DATABASE_URL_FILE: path }
    const [found] = await expectRed({ 'identity-database-version': 'failed' }, { settings: extra })
    expect(found!.command).toMatch(/^pg_isready -h \S+ -p \d+$/)
    expect(found!.seen).not.toContain('sesame')
  }
})

test('a pooler that shares sessions is found', async () => {
  const pooler = await postgresPooler(databaseUrl, { mode: 'transaction' })
  onTestFinished(() => pooler.close())
  const path = join(site.directory, 'pooled-url')
  writeFileSync(path, pooler.url, { mode: 0o600 })
  const extra = { SERVICE_IDENTITY_DATABASE_URL_FILE: path }
  await expectRed({ 'identity-database-sessions': 'failed' }, { settings: extra })
})

test('a database in another encoding is found', async () => {
  await client.query(`create database latin_of_doctor encoding 'LATIN1' template template0`)
  onTestFinished(async () => void (await client.query('drop database latin_of_doctor')))
  const url = new URL(databaseUrl)
  url.pathname = '/latin_of_doctor'
  const path = join(site.directory, 'latin-url')
  writeFileSync(path, url.href, { mode: 0o600 })
  const extra = { SERVICE_IDENTITY_DATABASE_URL_FILE: path }
  const [found] = await expectRed({ 'identity-database-encoding': 'failed' }, { settings: extra })
  expect(found!.command).toMatch(/^createdb .* latin_of_doctor_utf8$/)
})

test('a small file system in memory is full, not durable and short of inodes', async (context) => {
  const at = join(site.directory, 'small')
  const unmount = mountSmall(at)
  if (unmount === null) return context.skip('this machine mounts nothing')
  onTestFinished(unmount)
  mkdirSync(join(at, 'state'), { mode: 0o700 })
  const red = {
    'disk-space': 'failed',
    'disk-inodes': 'failed',
    'disk-kind': 'failed',
  } as const
  await expectRed(red, { settings: { SERVICE_STATE_DIRECTORY: join(at, 'state') } })
})

test('a root that was never started has no failure', async () => {
  const aside = `${site.root}.aside`
  renameSync(site.root, aside)
  onTestFinished(() => {
    rmSync(site.root, { recursive: true, force: true })
    renameSync(aside, site.root)
  })
  const made = await app.installation.svc(
    argv`init --root ${site.root} --workspace ${site.directory}/other --name Other`,
  )
  expect(made.status).toBe(0)
  expect(existsSync(site.root)).toBe(true)
  const { checks } = await examine()
  expect(redOf(checks)).toEqual(usual)
})
