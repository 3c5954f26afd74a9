/**
 * Several operators use the executables, and every secret is traced.
 *
 * @module-tag slow
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { type Json, operationId } from '../application.ts'
import { argv } from '../argv.ts'
import { administer, allFiles, databaseRows, findLocations, ownDatabaseLogin } from '../canaries.ts'
import {
  CLIENT,
  call,
  createInstallation,
  type Installation,
  productEnvironment,
  run,
  SERVER,
} from '../harness.ts'
import {
  misplacedInArguments,
  misplacedInRequests,
  unusableEnvironments,
} from './misplaced-secrets.ts'

type Who = 'owner' | 'developer' | 'observer' | 'stranger' | 'recovered'

let installation: Installation
let server: ServerProcess
let url: { own: URL; administrator: string }
let releaseId: string
const servers: ServerProcess[] = []
/** Secrets by name, with the only file that may contain each. */
const secrets = new Map<string, { text: string; file: string | null }>()
/** All outputs and responses, without the one-time secrets in them. */
const seen = new Map<string, Buffer>()

const within = (...names: string[]): string => join(installation.directory, ...names)
const root = (): string[] => argv`--root ${installation.productRoot}`
const remote = (): string[] => argv`--remote ${root()}`
const home = (who: Who): string => `home-${who}`
const credentials = (who: Who): string => `${home(who)}/credentials-v1.json`

function keepSecret(name: string, text: string, file: string | null = null): string {
  expect(text.length, name).toBeGreaterThanOrEqual(32)
  secrets.set(name, { text, file })
  return text
}

function secret(name: string): string {
  const found = secrets.get(name)
  if (found === undefined) throw new Error(`no secret is called ${name}`)
  return found.text
}

function keepSeen(name: string, text: string): void {
  seen.set(`${seen.size} ${name}`, Buffer.from(text))
}

/** Records the tokens of an operator. Only the latest may be in the file; older ones nowhere. */
function keepTokens(who: Who): void {
  if (!existsSync(within(credentials(who)))) return
  const profile = JSON.parse(readFileSync(within(credentials(who)), 'utf8'))
  for (const kind of ['accessToken', 'refreshToken']) {
    keepSecret(`${who} ${kind} ${profile[kind].slice(-8)}`, profile[kind], credentials(who))
  }
}

function tokens(who: Who): { accessToken: string; refreshToken: string; sessionId: string } {
  return JSON.parse(readFileSync(within(credentials(who)), 'utf8'))
}

interface Given {
  readonly environment?: Record<string, string>
  /** The field of the output that contains a one-time secret, and the name to record it by. */
  readonly shown?: readonly ['code' | 'key', string]
}

/** Runs `svc ... --json` as one operator with a home of its own. */
async function svc(who: Who, args: readonly string[], given: Given = {}) {
  const result = await run(argv`${CLIENT} ${args} --json`, {
    environment: {
      SERVICE_CONFIG_HOME: within(home(who)),
      SVC_ALLOW_LOOPBACK_HTTP: 'true',
      ...given.environment,
    },
    directory: within('run'),
  })
  let { stdout } = result
  const body: Json = JSON.parse(stdout)
  if (given.shown !== undefined) {
    const [field, name] = given.shown
    stdout = stdout.replace(keepSecret(name, body[field]), '')
  }
  const command = args.slice(0, 2).join(' ')
  keepSeen(`stdout of ${who}: ${command}`, stdout)
  keepSeen(`stderr of ${who}: ${command}`, result.stderr)
  keepTokens(who)
  return { status: result.status, body, code: body.error?.code, stderr: result.stderr }
}

/** Runs `svc` like the function above and expects it to succeed. */
async function done(who: Who, args: readonly string[], given: Given = {}): Promise<Json> {
  const { status, body, stderr } = await svc(who, args, given)
  expect([status, status === 0 ? '' : JSON.stringify(body) + stderr], args.join(' ')).toEqual([
    0,
    '',
  ])
  return body
}

function login(who: Who, code: string) {
  return svc(who, argv`login --url ${server.management} --code-env CODE --device ${who}`, {
    environment: { CODE: code },
  })
}

const NO_CODE = `rk_inv_v1_${'A'.repeat(43)}`

async function serverMode(mode: string, environment: Record<string, string> = {}) {
  const result = await run([SERVER, mode], {
    environment: { ...installation.environment, ...environment },
    directory: within('run'),
  })
  keepSeen(`${mode} stdout`, result.stdout)
  keepSeen(`${mode} stderr`, result.stderr)
  return result
}

async function start(): Promise<void> {
  server = await installation.start({
    ...productEnvironment(installation),
    SERVICE_LOG_SEGMENT_SECONDS: '1',
    TMPDIR: within('tmp'),
  })
  servers.push(server)
}

beforeAll(async () => {
  installation = await createInstallation()
  mkdirSync(within('tmp'), { mode: 0o700 })
  url = await ownDatabaseLogin(within('database-url'))
  keepSecret('database password', url.own.password, 'database-url')
  keepSecret('pepper', readFileSync(within('pepper'), 'utf8').trim(), 'pepper')
  await done('owner', argv`init ${root()} --workspace ${installation.workspace} --name Story`)
  const keyring = readFileSync(join(installation.productRoot, 'keyring.json'), 'utf8')
  const [key] = JSON.parse(keyring).keys
  keepSecret('key material', key.key, 'product/keyring.json')
  await start()
})

afterAll(async () => {
  await installation?.dispose()
  if (url !== undefined) await administer(url.administrator, `drop role ${url.own.username}`)
})

test('the first owner logs in with the code of the file, and with no other code', async () => {
  const code = keepSecret('bootstrap code', readFileSync(installation.codeFile, 'utf8').trim())
  const other = code.replace(/.(?=.{20}$)/, (digit) => (digit === 'A' ? 'B' : 'A'))
  for (const wrong of [NO_CODE, other]) {
    const rejected = await login('stranger', wrong)
    expect([rejected.status, rejected.code]).toEqual([3, 'PLATFORM_AUTHENTICATION_FAILED'])
  }
  for (const malformed of [`${code}A`, code.slice(0, -1), code.toUpperCase()]) {
    const rejected = await login('stranger', malformed)
    expect([rejected.status, rejected.code]).toEqual([2, 'CLIENT_USAGE'])
  }
  expect(existsSync(within(credentials('stranger')))).toBe(false)
  expect((await login('owner', code)).status).toBe(0)
  expect((await login('stranger', code)).status).toBe(3)
  const service = JSON.parse(readFileSync(join(installation.productRoot, 'service.json'), 'utf8'))
  const { projectId, environmentId } = service
  const link = argv`link ${root()} --project-id ${projectId} --environment-id ${environmentId}`
  await done('owner', link)
  const released = await done('owner', argv`release ${remote()} --channel production`)
  releaseId = released.releaseId
})

const invitation = (name: string, role: string): string[] =>
  argv`invite --operator-name ${name} --role ${role} --scope environment`

test('a developer is invited to the Environment and has the granted capabilities', async () => {
  const given = { shown: ['code', 'developer code'] as const }
  const invited = await done('owner', argv`${invitation('dev', 'developer')} ${root()}`, given)
  expect(invited.scope.kind).toBe('environment')
  expect((await login('developer', invited.code)).status).toBe(0)
  expect((await login('stranger', invited.code)).status).toBe(3)
  const me = await done('developer', argv`whoami`)
  expect(me.operator.operatorName).toBe('dev')
  expect(me.grants).toMatchObject([{ scope: { kind: 'environment' }, source: 'invitation' }])
  const status = await done('developer', argv`status ${remote()}`)
  expect(status.channels).toMatchObject([{ channel: 'production', releaseId }])
  const promote = argv`promote ${remote()} --channel staging --release ${releaseId}`
  await done('developer', argv`${promote} --expected empty`)
})

test('a code that was written into a file can be used from there', async () => {
  const observer = argv`${invitation('obs', 'observer')} ${root()} --code-out observer.code`
  const invited = await done('owner', observer)
  expect(invited.code).toBeNull()
  const code = readFileSync(within('run/observer.code'), 'utf8').trim()
  keepSecret('observer code', code, 'run/observer.code')
  expect((await login('observer', code)).status).toBe(0)
})

test('an operator elsewhere, an observer and a developer cannot exceed their grants', async () => {
  const [project, environment] = [operationId().slice(4), operationId().slice(4)]
  const elsewhere = argv`--project-id prj_${project} --environment-id env_${environment}`
  const given = { shown: ['code', 'stranger code'] as const }
  const invited = await done('owner', argv`${invitation('far', 'operator')} ${elsewhere}`, given)
  expect((await login('stranger', invited.code)).status).toBe(0)
  const promote = argv`promote ${remote()} --channel production --release ${releaseId}`
  const owner = argv`invite --operator-name x --role owner --scope installation`
  const peer = [...invitation('x', 'observer'), ...root()]
  const client = argv`clients create ${remote()} --name x --kind confidential`
  const rejected: [Who, string[]][] = [
    ['stranger', promote],
    ['stranger', argv`status ${remote()}`],
    ['stranger', owner],
    ['observer', promote],
    ['observer', peer],
    ['developer', client],
    ['developer', owner],
    ['developer', peer],
    ['developer', ['audit']],
    ['developer', ['sessions', 'revoke', tokens('owner').sessionId]],
  ]
  for (const [who, args] of rejected) {
    const { status, code } = await svc(who, args)
    expect([status, code], `${who}: ${args.join(' ')}`).toEqual([3, 'PLATFORM_ACCESS_DENIED'])
  }
})

test('a refresh rotates the tokens, and reuse of a refresh token ends the session', async () => {
  const before = tokens('observer')
  const stale = { ...before, accessExpiresAtMicros: '1' }
  writeFileSync(within(credentials('observer')), JSON.stringify(stale), { mode: 0o600 })
  await done('observer', argv`whoami`)
  expect(tokens('observer').refreshToken).not.toBe(before.refreshToken)
  const { refreshToken } = before
  const body = { refreshToken }
  const reused = await call(server.management, 'POST', '/v1/auth/refresh', { body })
  keepSeen('refresh', JSON.stringify(reused))
  expect(reused.status).toBe(401)
  expect((await svc('observer', argv`whoami`)).status).toBe(3)
})

test('a revoked session is rejected at its next request', async () => {
  const { sessionId, accessToken, refreshToken } = tokens('developer')
  await done('developer', argv`whoami`)
  await done('owner', argv`sessions revoke ${sessionId}`)
  expect((await svc('developer', argv`status ${remote()}`)).status).toBe(3)
  const me = await call(server.management, 'GET', '/v1/auth/me', { token: accessToken })
  const body = { refreshToken }
  const refresh = await call(server.management, 'POST', '/v1/auth/refresh', { body })
  expect([me.status, refresh.status]).toEqual([401, 401])
  expect((await svc('developer', argv`whoami`)).status).toBe(3)
})

const RECOVER = { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }
const RECOVERY_FILE = 'state/bootstrap/owner-recovery.code'

test('owner recovery works while the server is down, and its code creates an owner', async () => {
  await server.stop()
  expect((await serverMode('recover-owner')).status).toBe(1)
  expect(existsSync(within(RECOVERY_FILE))).toBe(false)
  expect((await serverMode('recover-owner', RECOVER)).status).toBe(0)
  const code = keepSecret('recovery code', readFileSync(within(RECOVERY_FILE), 'utf8').trim())
  await start()
  expect((await login('recovered', code)).status).toBe(0)
  expect((await login('recovered', code)).status).toBe(3)
  const me = await done('recovered', argv`whoami`)
  expect(me.grants).toMatchObject([{ scope: { kind: 'installation' } }])
  await server.stop()
  await start()
  expect(existsSync(within(RECOVERY_FILE))).toBe(false)
})

test('the audit has each change once', async () => {
  const { items, next } = await done('owner', argv`audit --limit 1000`)
  expect(next).toBeNull()
  const counts: Record<string, number> = {}
  for (const { operation, outcome } of items) {
    const name = `${operation} ${outcome}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  expect(counts).toEqual({
    'bootstrap.create succeeded': 1,
    // The code of an owner recovery is consumed like a bootstrap code.
    'bootstrap.consume succeeded': 2,
    'invitation.create succeeded': 3,
    'invitation.consume succeeded': 3,
    'owner.recover succeeded': 1,
    'product.channel.promote succeeded': 2,
    'product.release.validate succeeded': 1,
    'product.workspace.publish succeeded': 1,
    'session.create succeeded': 5,
    'session.refresh succeeded': 1,
    'session.reuse_detected succeeded': 1,
    'session.revoke succeeded': 1,
  })
  const changes = items.map((item: Json) => `${item.operation} ${item.subject} ${item.sessionId}`)
  expect(new Set(changes).size).toBe(changes.length)
  expect(new Set(items.map((item: Json) => item.auditId)).size).toBe(items.length)
})

const CANARY =
  'no bearer, code, pepper, DSN password or key is in a log line, error body, audit row, ' +
  'table or file where it does not belong'

test(CANARY, async () => {
  await createKeys()
  await provokeErrors()
  await provokeServerErrors()
  await server.stop()
  expect((await serverMode('recover-owner', RECOVER)).status).toBe(0)
  keepSecret('late code', readFileSync(within(RECOVERY_FILE), 'utf8').trim(), RECOVERY_FILE)
  await start()
  await done('owner', argv`status ${remote()}`)
  const files = await allFiles(installation.directory)
  const tables = await databaseRows(url.own.href)
  const lines = servers.flatMap((each) => each.lines)
  const log = new Map([['log', Buffer.from(lines.join('\n'))]])
  const locations = new Map([...seen, ...files, ...tables, ...log])
  expect([...files.keys()].filter((name) => name.endsWith('-wal'))).not.toEqual([])
  expect([...tables.keys()]).toContain('table public.service_platform_audit')
  expect(lines.length).toBeGreaterThan(20)
  const found: Record<string, string[]> = {}
  const allowed: Record<string, string[]> = {}
  for (const [name, { text, file }] of secrets) {
    found[name] = findLocations(text, locations)
    // The file must not contain the older token any longer.
    const holds = file !== null && files.get(file)?.includes(text) === true
    allowed[name] = holds ? [file] : []
  }
  expect(found).toEqual(allowed)
  const where = (name: string): string[] | undefined => found[name]
  expect(where('pepper')).toEqual(['pepper'])
  expect(where('late code')).toEqual([RECOVERY_FILE])
  expect(where('key material')).toEqual(['product/keyring.json'])
  expect(where('database password')).toEqual(['database-url'])
  expect(where('file key')).toEqual(['run/app.key'])
  expect(where('bootstrap code')).toEqual([])
  for (const text of [tokens('owner').accessToken, tokens('owner').refreshToken]) {
    expect(findLocations(text, locations)).toEqual([credentials('owner')])
  }
})

/** Creates two confidential keys, one printed and one written into a file, and uses both. */
async function createKeys(): Promise<void> {
  const named = argv`clients create ${remote()} --name backend --kind confidential`
  const { client } = await done('owner', named)
  const create = argv`credentials create ${remote()} --client ${client.clientId}`
  await done('owner', argv`${create} --name one`, { shown: ['key', 'printed key'] })
  await done('owner', argv`${create} --name two --key-out app.key`)
  keepSecret('file key', readFileSync(within('run/app.key'), 'utf8').trim(), 'run/app.key')
  for (const name of ['printed key', 'file key']) {
    const environment = { KEY: secret(name) }
    const call = argv`call channels.list ${remote()} --key-env KEY --url ${server.application!}`
    await done('owner', argv`${call} --target channel:production`, { environment })
  }
}

/** Sends each secret where it does not belong. No response may repeat it. */
async function provokeErrors(): Promise<void> {
  const known = { token: tokens('owner').accessToken, key: secret('file key') }
  const wrong = [
    ...['printed key', 'recovery code', 'developer code'].map(secret),
    tokens('owner').accessToken,
    tokens('owner').refreshToken,
  ]
  for (const text of wrong) {
    for (const origin of [server.management, server.application!]) {
      for (const [method, path, options] of misplacedInRequests(text, known)) {
        const { status, headers, body } = await call(origin, method, path, options)
        expect(status).toBeGreaterThanOrEqual(400)
        keepSeen(`${method} ${path.slice(0, 12)}`, JSON.stringify([[...headers], body]))
      }
    }
    for (const args of misplacedInArguments(text, server.management, remote())) {
      expect((await svc('owner', args)).status).not.toBe(0)
    }
  }
}

/** Starts servers with rejected settings. Their errors may not contain the settings. */
async function provokeServerErrors(): Promise<void> {
  const { environment: good } = installation
  const unusable = unusableEnvironments({ good, pepper: secret('pepper'), database: url.own })
  unusable.push(['serve', { ...good, ...productEnvironment(installation) }])
  for (const [mode, environment] of unusable) {
    const result = await run([SERVER, mode], { environment, directory: within('run') })
    keepSeen(`${mode} stdout`, result.stdout)
    keepSeen(`${mode} stderr`, result.stderr)
    expect(result.status, mode).not.toBe(0)
  }
}
