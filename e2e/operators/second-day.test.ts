/**
 * A team on its second day: releases that people recognise, dry runs, and offboarding.
 *
 * @module-tag slow
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, type Json, UNTYPED } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, run } from '../harness.ts'

let app: Application
beforeAll(async () => {
  app = await application()
})
afterAll(async () => {
  await app?.installation.dispose()
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const PIPELINE = {
  GITHUB_ACTIONS: 'true',
  GITHUB_SERVER_URL: 'https://github.com',
  GITHUB_REPOSITORY: 'acme/app',
  GITHUB_RUN_ID: '42',
  // The commands of the story find Git.
  PATH: process.env.PATH ?? '',
}

function git(...line: string[]): string {
  const identity = ['-c', 'user.name=Ana', '-c', 'user.email=ana@example.com']
  const options = { cwd: app.installation.workspace, encoding: 'utf8' } as const
  return execFileSync('git', [...identity, ...line], options).trim()
}

function rewrite(file: string, from: string | RegExp, to: string): void {
  const path = join(app.installation.workspace, file)
  const text = readFileSync(path, 'utf8')
  const next = text.replace(from, to)
  expect(next).not.toBe(text)
  writeFileSync(path, next)
}

/** Everything that a dry run must not change. */
async function stateOf(): Promise<Json> {
  const status = await app.svc(argv`status ${remote()}`)
  const { items } = await app.svc(argv`audit --limit 1000`)
  const files = readdirSync(join(app.installation.productRoot, 'artifacts'), { recursive: true })
  const kept = items.filter(({ operation }: Json) => operation !== 'session.refresh')
  return { status, audit: kept.length, files: files.toSorted() }
}

/** Runs a command that may fail. Returns the exit code and the document. */
async function attempt(args: readonly string[], environment = {}): Promise<[number | null, Json]> {
  const { status, stdout } = await app.installation.svc(argv`${args} --json`, environment)
  return [status, JSON.parse(stdout)]
}

test('a Release shows its commit and its run, and its bytes do not contain them', async () => {
  git('init', '--quiet', '--initial-branch', 'main')
  rewrite('functions/channels.ts', /^/, '// The second day.\n')
  git('add', '.')
  git('commit', '--quiet', '--message', 'The second day')
  const commit = git('rev-parse', 'HEAD')
  const plain = await app.svc(argv`build --root ${app.installation.productRoot} ${UNTYPED}`)
  const line = argv`
    release ${remote()} --channel production ${UNTYPED} --message ${'Größere Räume'}
  `
  const released = await app.svc(line, PIPELINE)
  const provenance = {
    message: 'Größere Räume',
    commit,
    branch: 'main',
    dirty: false,
    run: { provider: 'github', id: '42', url: 'https://github.com/acme/app/actions/runs/42' },
  }
  expect(released).toMatchObject({
    packageDigest: plain.packageDigest,
    provenance,
    channel: { channel: 'production', revision: '2', previousReleaseId: app.releaseId },
    target: 'channel:production',
    urls: { management: app.server.management, run: provenance.run.url },
  })
  expect(released.revisionId).toMatch(/^wsr_/)
  const { releases } = await app.svc(argv`releases list ${remote()}`)
  const shown = releases.map((each: Json) => [each.releaseId, each.provenance])
  expect(shown).toEqual([
    [released.releaseId, provenance],
    [app.releaseId, null],
  ])
  const source = `main@${commit.slice(0, 12)} github 42`
  for (const command of [argv`releases list ${remote()}`, argv`status ${remote()}`, argv`audit`]) {
    const { stdout } = await app.installation.svc(command)
    expect(stdout, command.join(' ')).toContain('Größere Räume')
    expect(stdout, command.join(' ')).toContain(source)
  }
  const repeated = await app.svc(argv`${line.slice(0, -1)} ${'Another message'}`, PIPELINE)
  expect(repeated).toMatchObject({ releaseId: released.releaseId, provenance })
})

test('a dry run shows what a release would change, and changes nothing', async () => {
  await app.svc(
    argv`
      call channels.create {"name":"general","author":"ana"} ${remote()} --key-env KEY
      --url ${app.server.application!} --target channel:production
    `,
    { KEY: app.key },
  )
  rewrite('functions/channels.ts', /^/, '// The third day.\n')
  const before = await stateOf()
  const line = argv`release ${remote()} --against production --channel production ${UNTYPED}`
  const [status, dry] = await attempt(argv`${line} --dry-run`, { PATH: PIPELINE.PATH })
  expect([status, dry]).toMatchObject([
    0,
    {
      dryRun: true,
      compatible: true,
      publishedReleaseId: null,
      channel: { channel: 'production', releaseId: before.status.channels[0].releaseId },
      provenance: { branch: 'main', dirty: true },
    },
  ])
  expect(dry.checks.map(({ name }: Json) => name)).toContain('documents:channels')
  const same = await app.svc(argv`diff ${remote()} --channel production`)
  expect([same.identical, same.tables]).toEqual([false, { added: [], removed: [], changed: [] }])
  expect(await stateOf()).toEqual(before)

  // The stored document lacks the field that becomes required.
  rewrite('schema.ts', /topic: v\.optional\((v\.string\(.*?\))\)/, 'topic: $1')
  rewrite('functions/channels.ts', /\{ name, topic \}/, "{ name, topic: topic ?? '' }")
  const changes = await app.svc(argv`diff ${remote()} --channel production`)
  expect(changes.tables.changed).toEqual([{ name: 'channels', parts: ['topic'] }])
  const alone = line.filter((word, i) => word !== '--against' && line[i - 1] !== '--against')
  for (const attempted of [line, alone]) {
    const [exit, rejected] = await attempt(argv`${attempted} --dry-run`)
    expect([exit, rejected.error.code]).toEqual([8, 'PRODUCT_INCOMPATIBLE'])
    expect(await stateOf()).toEqual(before)
    const [, actual] = await attempt(attempted)
    expect(actual.error.violations).toEqual(rejected.error.violations)
    // The publication of the real line stays behind; the Channel does not move.
    Object.assign(before, await stateOf())
    expect(before.status.channels[0].revision).toBe('2')
  }
  git('checkout', '--quiet', '--', '.')
})

/** `svc` with the session of a colleague. */
async function colleague(args: readonly string[], environment = {}) {
  const home = { SERVICE_CONFIG_HOME: join(app.installation.directory, 'home-of-ana') }
  const allowed = { SVC_ALLOW_LOOPBACK_HTTP: 'true' }
  return run(argv`${CLIENT} ${args} --json`, {
    environment: { ...home, ...allowed, ...environment },
    directory: join(app.installation.directory, 'run'),
  })
}

test('a colleague is offboarded by name, at once and for every session', async () => {
  const { code } = await app.svc(argv`
    invite --operator-name ana --role developer --scope environment
    --root ${app.installation.productRoot}
  `)
  const login = argv`login --url ${app.server.management} --code-env CODE`
  expect((await colleague(login, { CODE: code })).status).toBe(0)
  expect((await colleague(argv`status ${remote()}`)).status).toBe(0)
  expect((await colleague(argv`operators`)).status).toBe(3)

  const shown = await app.svc(argv`operators show ana`)
  expect(shown.operator.grants).toMatchObject([{ scope: { kind: 'environment' } }])
  expect(shown.sessions).toHaveLength(1)
  const [last, conflict] = await attempt(argv`operators disable owner`)
  expect([last, conflict.error.code]).toEqual([4, 'PLATFORM_CONFLICT'])
  const disabled = await app.svc(argv`operators disable ana`)
  expect(disabled.operation).toMatchObject({ kind: 'operator.disable', replayed: false })
  const { operationId } = disabled.operation
  const again = argv`operators disable ana --operation-id ${operationId}`
  expect((await app.svc(again)).operation.replayed).toBe(true)
  expect((await colleague(argv`status ${remote()}`)).status).toBe(3)

  const { items } = await app.svc(argv`audit --operation operator.disable`)
  expect(items).toMatchObject([
    { actorName: 'owner', subjectName: 'ana', subject: shown.operator.operatorId, operationId },
  ])
  const enabled = await app.svc(argv`operators enable ana`)
  expect(enabled.disabledAtMicros).toBeNull()
  expect((await colleague(argv`status ${remote()}`)).status).toBe(3)
  const { items: operators } = await app.svc(argv`operators list`)
  expect(operators.map((each: Json) => [each.operatorName, each.disabledAtMicros])).toEqual([
    ['ana', null],
    ['owner', null],
  ])
})
