/** What several operators do with the executables, and what becomes of every secret meanwhile. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerProcess } from '../build/testing/servers/server-process.ts'
import { type Json, operationId } from './application.ts'
import { administer, databaseRows, filesBelow, ownDatabaseLogin, placesOf } from './canaries.ts'
import {
  CLIENT,
  call,
  type Installation,
  installation,
  productEnvironment,
  run,
  SERVER,
} from './harness.ts'
import {
  misplacedInArguments,
  misplacedInRequests,
  unusableEnvironments,
} from './misplaced-secrets.ts'

type Who = 'owner' | 'developer' | 'observer' | 'stranger' | 'recovered'

let of: Installation
let server: ServerProcess
let url: { own: URL; administrator: string }
let releaseId: string
const servers: ServerProcess[] = []
/** By what it is: what must not be seen, and the one file that may hold it. */
const secrets = new Map<string, { text: string; file: string | null }>()
/** Everything that was printed or answered, but for the one-time answers. */
const seen = new Map<string, Buffer>()

const within = (...names: string[]): string => join(of.directory, ...names)
const root = (): string[] => ['--root', of.productRoot]
const remote = (): string[] => ['--remote', ...root()]
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

/** Tokens of one operator: the last ones belong into the file, earlier ones nowhere. */
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
  /** The field of the answer that is shown once, and what to call it. */
  readonly shown?: readonly ['code' | 'key', string]
}

/** `svc ... --json` as one operator with a home of its own. */
async function svc(who: Who, args: readonly string[], given: Given = {}) {
  const result = await run([CLIENT, ...args, '--json'], {
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

/** The same, where it has to succeed. */
async function done(who: Who, args: readonly string[], given: Given = {}): Promise<Json> {
  const { status, body, stderr } = await svc(who, args, given)
  expect([status, status === 0 ? '' : JSON.stringify(body) + stderr], args.join(' ')).toEqual([
    0,
    '',
  ])
  return body
}

function login(who: Who, code: string) {
  const to = ['--url', server.management, '--code-env', 'CODE', '--device', who]
  return svc(who, ['login', ...to], { environment: { CODE: code } })
}

const NO_CODE = `rk_inv_v1_${'A'.repeat(43)}`

async function serverMode(mode: string, environment: Record<string, string> = {}) {
  const result = await run([SERVER, mode], {
    environment: { ...of.environment, ...environment },
    directory: within('run'),
  })
  keepSeen(`${mode} stdout`, result.stdout)
  keepSeen(`${mode} stderr`, result.stderr)
  return result
}

async function start(): Promise<void> {
  server = await of.start({ ...productEnvironment(of), TMPDIR: within('tmp') })
  servers.push(server)
}

beforeAll(async () => {
  of = await installation()
  mkdirSync(within('tmp'), { mode: 0o700 })
  url = await ownDatabaseLogin(within('database-url'))
  keepSecret('database password', url.own.password, 'database-url')
  keepSecret('pepper', readFileSync(within('pepper'), 'utf8').trim(), 'pepper')
  await done('owner', ['init', ...root(), '--workspace', of.workspace, '--name', 'Story'])
  const [key] = JSON.parse(readFileSync(join(of.productRoot, 'keyring.json'), 'utf8')).keys
  keepSecret('key material', key.key, 'product/keyring.json')
  await start()
})

afterAll(async () => {
  await of?.dispose()
  if (url !== undefined) await administer(url.administrator, `drop role ${url.own.username}`)
})

test('the first owner logs in with the code of the file, nobody with another code', async () => {
  const code = keepSecret('bootstrap code', readFileSync(of.codeFile, 'utf8').trim())
  const other = code.replace(/.(?=.{20}$)/, (digit) => (digit === 'A' ? 'B' : 'A'))
  for (const wrong of [NO_CODE, other]) {
    const refused = await login('stranger', wrong)
    expect([refused.status, refused.code]).toEqual([3, 'PLATFORM_AUTHENTICATION_FAILED'])
  }
  for (const malformed of [`${code}A`, code.slice(0, -1), code.toUpperCase()]) {
    const refused = await login('stranger', malformed)
    expect([refused.status, refused.code]).toEqual([2, 'CLIENT_USAGE'])
  }
  expect(existsSync(within(credentials('stranger')))).toBe(false)
  expect((await login('owner', code)).status).toBe(0)
  expect((await login('stranger', code)).status).toBe(3)
  const service = JSON.parse(readFileSync(join(of.productRoot, 'service.json'), 'utf8'))
  const { projectId, environmentId } = service
  const ids = ['--project-id', projectId, '--environment-id', environmentId]
  await done('owner', ['link', ...root(), ...ids])
  const released = await done('owner', ['release', ...remote(), '--channel', 'production'])
  releaseId = released.releaseId
})

const invitation = (name: string, role: string): string[] => [
  ...['invite', '--operator-name', name, '--role', role, '--scope', 'environment'],
]

test('a developer of the Environment is invited and does what was given', async () => {
  const given = { shown: ['code', 'developer code'] as const }
  const invited = await done('owner', [...invitation('dev', 'developer'), ...root()], given)
  expect(invited.scope.kind).toBe('environment')
  expect((await login('developer', invited.code)).status).toBe(0)
  expect((await login('stranger', invited.code)).status).toBe(3)
  const me = await done('developer', ['whoami'])
  expect(me.operator.operatorName).toBe('dev')
  expect(me.grants).toMatchObject([{ scope: { kind: 'environment' }, source: 'invitation' }])
  const status = await done('developer', ['status', ...remote()])
  expect(status.channels).toMatchObject([{ channel: 'production', releaseId }])
  const staging = ['--channel', 'staging', '--release', releaseId]
  await done('developer', ['promote', ...remote(), ...staging, '--expected', 'empty'])
})

test('a code that was asked for in a file logs in from there', async () => {
  const observer = [...invitation('obs', 'observer'), ...root(), '--code-out', 'observer.code']
  const invited = await done('owner', observer)
  expect(invited.code).toBeNull()
  const code = readFileSync(within('run/observer.code'), 'utf8').trim()
  keepSecret('observer code', code, 'run/observer.code')
  expect((await login('observer', code)).status).toBe(0)
})

test('an operator of another Environment, an observer and a developer stay inside', async () => {
  const elsewhere = ['--project-id', `prj_${operationId().slice(4)}`]
  elsewhere.push('--environment-id', `env_${operationId().slice(4)}`)
  const given = { shown: ['code', 'stranger code'] as const }
  const invited = await done('owner', [...invitation('far', 'operator'), ...elsewhere], given)
  expect((await login('stranger', invited.code)).status).toBe(0)
  const promote = ['promote', ...remote(), '--channel', 'production', '--release', releaseId]
  const owner = ['invite', '--operator-name', 'x', '--role', 'owner', '--scope', 'installation']
  const peer = [...invitation('x', 'observer'), ...root()]
  const client = ['clients', 'create', ...remote(), '--name', 'x', '--kind', 'confidential']
  const refused: [Who, string[]][] = [
    ['stranger', promote],
    ['stranger', ['status', ...remote()]],
    ['stranger', owner],
    ['observer', promote],
    ['observer', peer],
    ['developer', client],
    ['developer', owner],
    ['developer', peer],
    ['developer', ['audit']],
    ['developer', ['sessions', 'revoke', tokens('owner').sessionId]],
  ]
  for (const [who, args] of refused) {
    const { status, code } = await svc(who, args)
    expect([status, code], `${who}: ${args.join(' ')}`).toEqual([3, 'PLATFORM_ACCESS_DENIED'])
  }
})

test('a refreshed session has new tokens, and a used refresh token ends it', async () => {
  const before = tokens('observer')
  const stale = { ...before, accessExpiresAtMicros: '1' }
  writeFileSync(within(credentials('observer')), JSON.stringify(stale), { mode: 0o600 })
  await done('observer', ['whoami'])
  expect(tokens('observer').refreshToken).not.toBe(before.refreshToken)
  const { refreshToken } = before
  const body = { refreshToken }
  const reused = await call(server.management, 'POST', '/v1/auth/refresh', { body })
  keepSeen('refresh', JSON.stringify(reused))
  expect(reused.status).toBe(401)
  expect((await svc('observer', ['whoami'])).status).toBe(3)
})

test('a revoked session is refused with the next request', async () => {
  const { sessionId, accessToken, refreshToken } = tokens('developer')
  await done('developer', ['whoami'])
  await done('owner', ['sessions', 'revoke', sessionId])
  expect((await svc('developer', ['status', ...remote()])).status).toBe(3)
  const me = await call(server.management, 'GET', '/v1/auth/me', { token: accessToken })
  const body = { refreshToken }
  const refresh = await call(server.management, 'POST', '/v1/auth/refresh', { body })
  expect([me.status, refresh.status]).toEqual([401, 401])
  expect((await svc('developer', ['whoami'])).status).toBe(3)
})

const RECOVER = { SERVICE_OWNER_RECOVERY_CONFIRM: 'issue-owner-invitation' }
const RECOVERY_FILE = 'state/bootstrap/owner-recovery.code'

test('owner recovery works while the server is down, and its code makes an owner', async () => {
  await server.stop()
  expect((await serverMode('recover-owner')).status).toBe(1)
  expect(existsSync(within(RECOVERY_FILE))).toBe(false)
  expect((await serverMode('recover-owner', RECOVER)).status).toBe(0)
  const code = keepSecret('recovery code', readFileSync(within(RECOVERY_FILE), 'utf8').trim())
  await start()
  expect((await login('recovered', code)).status).toBe(0)
  expect((await login('recovered', code)).status).toBe(3)
  const me = await done('recovered', ['whoami'])
  expect(me.grants).toMatchObject([{ scope: { kind: 'installation' } }])
  await server.stop()
  await start()
  expect(existsSync(within(RECOVERY_FILE))).toBe(false)
})

test('the audit has each change once', async () => {
  const { items, next } = await done('owner', ['audit', '--limit', '1000'])
  expect(next).toBeNull()
  const counts: Record<string, number> = {}
  for (const { operation, outcome } of items) {
    const name = `${operation} ${outcome}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  expect(counts).toEqual({
    'bootstrap.create succeeded': 1,
    // The code of the owner recovery is one of a bootstrap too.
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
  'no bearer, code, pepper, DSN password or key is in any log line, error body, audit row, ' +
  'table or file but where it belongs'

test(CANARY, async () => {
  await createKeys()
  await provokeErrors()
  await provokeServerErrors()
  await server.stop()
  expect((await serverMode('recover-owner', RECOVER)).status).toBe(0)
  keepSecret('late code', readFileSync(within(RECOVERY_FILE), 'utf8').trim(), RECOVERY_FILE)
  await start()
  await done('owner', ['status', ...remote()])
  const files = filesBelow(of.directory)
  const tables = await databaseRows(url.own.href)
  const lines = servers.flatMap((one) => one.lines)
  const log = new Map([['log', Buffer.from(lines.join('\n'))]])
  const places = new Map([...seen, ...files, ...tables, ...log])
  expect([...files.keys()].filter((name) => name.endsWith('-wal'))).not.toEqual([])
  expect([...tables.keys()]).toContain('table public.service_platform_audit')
  expect(lines.length).toBeGreaterThan(20)
  const found: Record<string, string[]> = {}
  const allowed: Record<string, string[]> = {}
  for (const [name, { text, file }] of secrets) {
    found[name] = placesOf(text, places)
    // An earlier token was in the same file; it is gone from there.
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
    expect(placesOf(text, places)).toEqual([credentials('owner')])
  }
})

/** A confidential key that is printed and one that goes into a file; both are used. */
async function createKeys(): Promise<void> {
  const kind = ['--name', 'backend', '--kind', 'confidential']
  const { client } = await done('owner', ['clients', 'create', ...remote(), ...kind])
  const create = ['credentials', 'create', ...remote(), '--client', client.clientId]
  await done('owner', [...create, '--name', 'one'], { shown: ['key', 'printed key'] })
  await done('owner', [...create, '--name', 'two', '--key-out', 'app.key'])
  keepSecret('file key', readFileSync(within('run/app.key'), 'utf8').trim(), 'run/app.key')
  const to = [...remote(), '--key-env', 'KEY', '--url', server.application!]
  const target = ['--target', 'channel:production']
  for (const name of ['printed key', 'file key']) {
    const environment = { KEY: secret(name) }
    await done('owner', ['call', 'channels.list', ...to, ...target], { environment })
  }
}

/** Each secret where it does not belong: what answers must not repeat it. */
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

/** A server that does not start says why without what it was given. */
async function provokeServerErrors(): Promise<void> {
  const { environment: good } = of
  const unusable = unusableEnvironments({ good, pepper: secret('pepper'), database: url.own })
  unusable.push(['serve', { ...good, ...productEnvironment(of) }])
  for (const [mode, environment] of unusable) {
    const result = await run([SERVER, mode], { environment, directory: within('run') })
    keepSeen(`${mode} stdout`, result.stdout)
    keepSeen(`${mode} stderr`, result.stderr)
    expect(result.status, mode).not.toBe(0)
  }
}
