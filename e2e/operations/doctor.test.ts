/**
 * The doctor of the compiled executables: a healthy installation has no failure in any state, with
 * documents in the root and in PostgreSQL, and faults of its files and settings are found.
 *
 * @module-tag slow
 */
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { type Application, application, mutation } from '../application.ts'
import { argv } from '../argv.ts'
import { type Environment, productEnvironment, run, SERVER } from '../harness.ts'
import { writeEntries } from '../restarts/entries.ts'

interface Check {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly seen: string
  readonly why: string
  readonly command: string | null
}

interface Report {
  readonly version: number
  readonly checks: readonly Check[]
}

/**
 * Warnings that a machine of tests may deserve: its superuser, its slow or small disk, its
 * processors, and a kernel without all layers of the sandbox.
 */
const OF_MACHINE = [
  'user',
  'disk-space',
  'disk-kind',
  'fsync-latency',
  'descriptors',
  'processes',
  'processors',
  'memory-limit',
  'memory-kills',
  'sandbox',
]

const PLACES = ['the Product root', 'PostgreSQL'] as const

describe.each(PLACES)('with documents in %s', (place) => {
  let app: Application
  let documents: TestDatabase | null = null
  let settings: Environment

  beforeAll(async () => {
    documents = place === 'PostgreSQL' ? await freshDatabase() : null
    const given = documents === null ? {} : { SERVICE_PLATFORM_DATABASE_URL: documents.url }
    app = await application(writeEntries, given)
    settings = {
      ...app.installation.environment,
      ...productEnvironment(app.installation),
      ...given,
    }
    for (let number = 0; number < 5; number++) await add(app, number)
  })
  afterAll(async () => {
    await app?.installation.dispose()
    await documents?.drop()
  })

  async function local(extra: Environment = {}): Promise<{ report: Report; exit: number | null }> {
    const result = await run([SERVER, 'doctor', '--json'], {
      environment: { ...settings, ...extra },
    })
    expect(result.stderr).toBe('')
    expectNoSecret(result.stdout)
    return { report: JSON.parse(result.stdout), exit: result.status }
  }

  function expectNoSecret(output: string): void {
    const { environment } = app.installation
    for (const name of [
      'SERVICE_IDENTITY_DATABASE_URL_FILE',
      'SERVICE_PLATFORM_IDENTITY_PEPPER_FILE',
    ]) {
      expect(output).not.toContain(readFileSync(environment[name]!, 'utf8').trim())
    }
    const keyring = JSON.parse(
      readFileSync(join(app.installation.productRoot, 'keyring.json'), 'utf8'),
    )
    for (const { key } of keyring.keys) expect(output).not.toContain(key)
  }

  function expectHealthy({ checks }: Report): void {
    expect(checks.length).toBeGreaterThanOrEqual(40)
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([])
    const warned = checks.filter(({ status }) => status === 'warning')
    // The installation of the test has no settings of backups. A kill may lose records of the log.
    const usual = [...OF_MACHINE, 'backup-recipients', 'log-loss']
    expect(warned.filter(({ name }) => !usual.includes(name))).toEqual([])
  }

  const find = ({ checks }: Report, name: string): Check =>
    checks.find((check) => check.name === name)!

  const inDocuments = ['documents-sequence', 'indexes-built', 'indexes-agree']
  const underLock = [
    'control-integrity',
    'keyring',
    'artifacts-present',
    'files-present',
    'log-integrity',
    'log-archive',
  ]

  test('beside a running server the checks without its lock are made', async () => {
    const { report, exit } = await local()
    expectHealthy(report)
    expect(exit).toBe(0)
    expect(find(report, 'root-lock').seen).toContain('a server runs')
    expect(find(report, 'listener-management').status).toBe('ok')
    expect(find(report, 'artifacts-intact').status).toBe('ok')
    for (const name of underLock) expect(find(report, name)).toMatchObject({ status: 'skipped' })
  })

  test('a running server makes the checks for an operator', async () => {
    const root = argv`--root ${app.installation.productRoot}`
    const report: Report = await app.svc(argv`doctor --remote ${root}`)
    expectNoSecret(JSON.stringify(report))
    expectHealthy(report)
    for (const name of [...underLock, ...inDocuments, 'forwarded-headers', 'identity-pepper']) {
      expect(find(report, name)).toMatchObject({ status: 'ok' })
    }
    await add(app, 100)
  })

  test('a stopped installation is checked whole and left as it is', async () => {
    await app.server.stop()
    const before = listing(app)
    const { report, exit } = await local()
    expectHealthy(report)
    expect(exit).toBe(0)
    for (const name of [...underLock, ...inDocuments, 'identity-pepper', 'owner']) {
      expect(find(report, name)).toMatchObject({ status: 'ok' })
    }
    const isRemote = place === 'PostgreSQL'
    expect(find(report, 'document-file-integrity').status).toBe(isRemote ? 'skipped' : 'ok')
    expect(find(report, 'documents-database-version').status).toBe(isRemote ? 'ok' : 'skipped')
    expect(listing(app)).toEqual(before)
  })

  test('an installation that was killed is checked with its write-ahead log', async () => {
    await app.start()
    await add(app, 200)
    app.server.kill()
    await app.server.ended
    const before = listing(app)
    expectHealthy((await local()).report)
    expect(listing(app)).toEqual(before)
  })

  test('faults of files and settings fail, with what repairs them', async () => {
    const { productRoot } = app.installation
    const directory = join(productRoot, 'artifacts/sha256')
    const [head] = readdirSync(directory)
    const [tail] = readdirSync(join(directory, head!))
    const artifact = join(directory, head!, tail!)
    const whole = readFileSync(artifact)
    const altered = Buffer.from(whole)
    altered[0] = altered[0]! ^ 1
    writeFileSync(artifact, altered)
    const control = join(productRoot, 'control.db')
    chmodSync(control, 0o644)
    const other = { SERVICE_MISSPELLED: 'yes' }
    try {
      const { report, exit } = await local(other)
      expect(exit).toBe(4)
      expect(find(report, 'artifacts-intact')).toMatchObject({
        status: 'failed',
        seen: expect.stringContaining(head! + tail!),
        command: 'svc publish',
      })
      expect(find(report, 'root-permissions')).toMatchObject({
        status: 'failed',
        command: `chmod go-rwx ${control}`,
      })
      expect(find(report, 'settings-known').status).toBe('warning')
      const shown = await run([SERVER, 'doctor'], { environment: { ...settings, ...other } })
      expect(shown.status).toBe(4)
      const lines = shown.stdout.trimEnd().split('\n')
      const last = lines.findLastIndex((line) => line.startsWith('ok '))
      expect(lines.findIndex((line) => line.startsWith('failed '))).toBeGreaterThan(last)
      expect(shown.stdout).toContain(`Repair: chmod go-rwx ${control}`)
    } finally {
      writeFileSync(artifact, whole)
      chmodSync(control, 0o600)
    }
    rmSync(artifact)
    expect(find((await local()).report, 'artifacts-present').status).toBe('failed')
    writeFileSync(artifact, whole, { mode: 0o600 })
    expectHealthy((await local()).report)
  })

  test('settings that cannot be read are the one failure', async () => {
    const { report, exit } = await local({ SERVICE_MEMORY_TARGET: 'much' })
    expect(exit).toBe(4)
    const failed = report.checks.filter(({ status }) => status === 'failed')
    expect(failed.map(({ name }) => name)).toEqual(['settings-valid'])
    expect(failed[0]!.seen).toContain('SERVICE_MEMORY_TARGET')
    expect(failed[0]!.seen).not.toContain('much')
  })
})

async function add(app: Application, number: number): Promise<void> {
  const given = { number: { type: 'int64', value: String(number) } }
  const { status } = await mutation(app, { function: 'entries.add', arguments: given })
  expect(status).toBe(200)
}

/** Names and contents of the files of the root that the doctor must not change. */
function listing(app: Application): Record<string, number> {
  const { productRoot } = app.installation
  const names = readdirSync(productRoot, { recursive: true, encoding: 'utf8' })
    // SQLite rolls the transaction of a killed server on the lock back. Application processes that
    // end after a killed server change the index of a log.
    .filter((name) => !name.startsWith('lock.db') && !name.endsWith('-shm'))
    .sort()
  return Object.fromEntries(
    names.map((name) => {
      const path = join(productRoot, name)
      try {
        return [name, Number(Bun.hash.crc32(readFileSync(path)))]
      } catch {
        return [name, 0]
      }
    }),
  )
}
