import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  type FakeServer,
  failure,
  newId,
  REQUEST_ID,
  type Reply,
} from '../../testing/client/fake-server.ts'
import { linkedClient } from '../../testing/client/linked-client.ts'
import { runProcess } from '../../testing/client/processes.ts'
import type { TestClient } from '../../testing/client/test-client.ts'
import { CODES, type TableCode } from '../errors/codes.ts'
import { KINDS } from '../errors/kinds.ts'
import { VERSION } from '../value/version.ts'
import { COMMANDS } from './main.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const STATUS = ['status', '--remote', '--root', 'root']
const SERVER_CODES = (Object.keys(CODES) as TableCode[]).filter(
  (code) => /^(?:PLATFORM|PRODUCT)_/.test(code) && code !== 'PLATFORM_AUTHENTICATION_FAILED',
)

describe('a failure', () => {
  it.each(SERVER_CODES)('%s ends with the exit code of its kind', async (code) => {
    server.intercept = () => failure(code)
    const human = await client.run('promote', ...STATUS.slice(1), '--channel', 'main', ...RELEASE)
    const { kind, message, next } = CODES[code]
    const denied = ` The operator is owner, the scope ${server.environmentId}.`
    const detail = code === 'PLATFORM_ACCESS_DENIED' ? denied : ''
    expect(human).toEqual({
      exit: KINDS[kind].exit,
      out: '',
      err: `svc: ${code}: ${message}${detail}\n  ${next}\n  request ${REQUEST_ID}\n`,
    })
  })

  it.each<[number, number]>([
    [400, 8],
    [401, 3],
    [403, 3],
    [404, 7],
    [409, 4],
    [410, 7],
    [413, 8],
    [418, 8],
    [429, 5],
    [500, 1],
    [503, 5],
    [599, 1],
  ])('a failure with an unknown code and HTTP status %i ends with %i', async (status, exit) => {
    server.intercept = () => failure('PLATFORM_FROM_THE_FUTURE', status)
    const ran = await client.run(...STATUS, '--json')
    expect(ran.exit).toBe(exit)
    const { error } = JSON.parse(ran.out)
    expect(error).toMatchObject({
      code: 'PLATFORM_FROM_THE_FUTURE',
      message: 'Said by the server.',
      requestId: REQUEST_ID,
    })
  })

  it.each<[string, Reply, number]>([
    ['a page of a gateway', { status: 502, text: '<html>' }, 5],
    ['a page of something else', { status: 404, text: '<html>' }, 1],
    ['a redirect', { status: 302, headers: { location: 'https://elsewhere.example.com/' } }, 1],
    ['a body that is not JSON', { status: 200, text: '{' }, 1],
    ['a duplicate key', { status: 200, text: '{"version":1,"version":1}' }, 1],
    ['another version', { status: 200, body: { version: 2 } }, 1],
    ['another media type', { status: 200, text: '{}', headers: { 'content-type': 'a/b' } }, 1],
    ['a response without an end', { status: 200, text: `"${'x'.repeat(5_000_000)}"` }, 1],
  ])('a failure is reported for %s', async (_, reply, exit) => {
    server.intercept = () => reply
    const ran = await client.run(...STATUS, '--json')
    expect(ran.exit).toBe(exit)
    const code = exit === 5 ? 'CLIENT_SERVER_UNREACHABLE' : 'CLIENT_RESPONSE_INVALID'
    expect(JSON.parse(ran.out).error.code).toBe(code)
  })

  it('an unreachable server ends the command with 5', async () => {
    server.stop()
    expect((await client.run(...STATUS)).exit).toBe(5)
  })

  it('escapes control characters in texts of the server', async () => {
    const reply = failure('PLATFORM_FROM_THE_FUTURE', 409)
    const error = {
      code: 'PLATFORM_FROM_THE_FUTURE',
      message: 'a\u001b[2Jb\u202e',
      retryable: false,
    }
    server.intercept = () => ({ ...reply, body: { ...(reply.body as object), error } })
    const ran = await client.run(...STATUS)
    expect(ran.err).toContain('a\\u{1b}[2Jb\\u{202e}\n')
  })

  it('a failure is retried for a while if that is safe', async () => {
    let left = 3
    server.requests.length = 0
    server.intercept = () => (left-- > 0 ? failure('PLATFORM_UNAVAILABLE') : null)
    expect((await client.run(...STATUS)).exit).toBe(0)
    expect(server.requests).toHaveLength(4)
  })

  it('inside the client is reported as CLIENT_FAILED', async () => {
    client.tools = {
      build: () => Promise.reject(new RangeError('a defect')),
      generate: async () => ({ changed: [], warnings: [] }),
      writeWorkspace: async () => [],
    }
    const ran = await client.run('build', '--root', 'root', '--workspace', 'app')
    expect([ran.exit, ran.err]).toEqual([1, expect.stringContaining('CLIENT_FAILED')])
    expect(ran.err).toContain('RangeError: a defect')
  })
})

const RELEASE = ['--release', newId.make('rel')]
const CLIENT_ID = newId.make('app')
const CREDENTIAL = ['--client', CLIENT_ID, '--credential', newId.make('crd')]
const REMOTE = ['--remote', '--root', 'root']
/** One command line for each command that needs no builder. */
const LINES: readonly (readonly string[])[] = [
  ['version'],
  ['completion', 'bash'],
  ['docs'],
  ['auth', 'status'],
  ['whoami'],
  ['sessions', 'list'],
  ['sessions', 'derive', '--scope', 'installation', '--capability', 'logs:read'],
  ['sessions', 'revoke', newId.make('ops')],
  ['resources'],
  ['invite', '--operator-name', 'ana', '--role', 'observer', '--scope', 'installation'],
  ['invitations', 'show', newId.make('opn')],
  ['invitations', 'revoke', newId.make('opi')],
  ['operators', 'list'],
  ['operators', 'show', 'ana'],
  ['operators', 'disable', 'ana'],
  ['operators', 'enable', 'ana'],
  ['grants', 'change', 'ana', '--role', 'observer', '--scope', 'installation'],
  ['grants', 'revoke', 'ana', '--scope', 'installation'],
  ['roles'],
  ['audit'],
  ['logout'],
  ['link', '--root', 'root'],
  ['status', ...REMOTE],
  ['health', ...REMOTE],
  ['doctor', ...REMOTE],
  ['metrics', ...REMOTE],
  ['logs', ...REMOTE, '--limit', '0'],
  ['logs', 'archive-status', ...REMOTE],
  ['logs', 'prune', ...REMOTE, '--before-micros', '1', '--maximum', '1'],
  ['promote', ...REMOTE, '--channel', 'main', ...RELEASE],
  ['rollback', ...REMOTE, '--channel', 'main', '--expected', RELEASE[1]!, '--to', RELEASE[1]!],
  ['releases', 'list', ...REMOTE],
  ['releases', 'retire', ...REMOTE, ...RELEASE],
  ['migrations', 'list', ...REMOTE],
  ['migrations', 'run', 'addPriority', ...REMOTE],
  ['migrations', 'pause', 'addPriority', ...REMOTE],
  ['migrations', 'resume', 'addPriority', ...REMOTE],
  ['migrations', 'cancel', 'addPriority', ...REMOTE],
  ['migrations', 'status', 'addPriority', ...REMOTE],
  ['crons', 'list', ...REMOTE],
  ['crons', 'enable', 'digest', ...REMOTE],
  ['crons', 'disable', 'digest', ...REMOTE],
  ['crons', 'run', 'digest', ...REMOTE],
  ['http', 'list', ...REMOTE],
  ['http', 'mount', 'payments', ...REMOTE, '--target', 'channel:main'],
  ['http', 'unmount', 'payments', ...REMOTE],
  ['http', 'deliveries', 'payments', ...REMOTE],
  ['http', 'delivery', 'payments', newId.make('sch'), ...REMOTE],
  ['http', 'replay', 'payments', newId.make('sch'), ...REMOTE],
  ['scheduled', 'list', ...REMOTE],
  ['scheduled', 'cancel', newId.make('sch'), ...REMOTE],
  ['buckets', 'list', ...REMOTE],
  ['buckets', 'create', 'uploads', ...REMOTE],
  ['buckets', 'update', 'uploads', ...REMOTE, '--quota', 'none'],
  ['buckets', 'archive', 'uploads', ...REMOTE],
  ['buckets', 'keys', 'list', 'uploads', ...REMOTE],
  ['buckets', 'keys', 'issue', 'uploads', ...REMOTE, '--name', 'ci', '--access', 'read'],
  ['buckets', 'keys', 'rotate', 'uploads', ...REMOTE, '--key', newId.make('stk')],
  ['buckets', 'keys', 'revoke', 'uploads', ...REMOTE, '--key', newId.make('stk')],
  ['files', 'list', ...REMOTE],
  ['files', 'put', 'missing', ...REMOTE],
  ['files', 'get', 'missing', ...REMOTE],
  ['files', 'delete', 'missing', ...REMOTE],
  ['functions', ...REMOTE, '--target', 'channel:main'],
  ['functions', 'stats', ...REMOTE, '--target', 'channel:main'],
  ['tables', ...REMOTE, '--target', 'channel:main'],
  ['data', 'query', 'notes', ...REMOTE, '--target', 'channel:main'],
  ['data', 'get', 'notes', 'notes_1', ...REMOTE, '--target', 'channel:main'],
  ['data', 'put', 'notes', '{}', ...REMOTE, '--target', 'channel:main'],
  ['data', 'delete', 'notes', 'notes_1', ...REMOTE, '--target', 'channel:main'],
  ['data', 'tables', ...REMOTE, '--target', 'channel:main'],
  ['data', 'import', 'notes', 'notes.jsonl', ...REMOTE, '--target', 'channel:main'],
  ['data', 'export', 'notes', ...REMOTE, '--target', 'channel:main'],
  ['import', 'convex', 'notes.zip', '--out', 'imported'],
  ['import', 'pocketbase', 'notes.zip', '--out', 'imported'],
  ['import', 'parse', 'notes.zip', '--out', 'imported'],
  ['import', 'firebase', 'notes.zip', '--out', 'imported'],
  ['import', 'files', 'imported', ...REMOTE],
  ['import', 'verify', 'imported', ...REMOTE, '--target', 'channel:main'],
  ['data', 'compact', '--table', 'notes', ...REMOTE, '--target', 'channel:main'],
  ['serve-policy', 'get', ...REMOTE],
  ['serve-policy', 'set', ...REMOTE, '--releases', newId.make('rel')],
  ['environments', 'get', ...REMOTE],
  ['environments', 'update', ...REMOTE, '--name', 'Shop'],
  ['environments', 'archive', ...REMOTE],
  ['environments', 'restore', ...REMOTE],
  ['clients', 'create', ...REMOTE, '--name', 'web', '--kind', 'public'],
  ['clients', 'list', ...REMOTE],
  ['config', 'list', ...REMOTE],
  ['config', 'set', 'GREETING', 'hello', ...REMOTE],
  ['config', 'unset', 'GREETING', ...REMOTE],
  ['config', 'history', ...REMOTE],
  ['credentials', 'create', ...REMOTE, '--client', CLIENT_ID, '--name', 'ci'],
  ['credentials', 'list', ...REMOTE, '--client', CLIENT_ID],
  ['credentials', 'rotate', ...REMOTE, ...CREDENTIAL],
  ['credentials', 'reveal', ...REMOTE, ...CREDENTIAL],
  ['credentials', 'revoke', ...REMOTE, ...CREDENTIAL],
  ['credentials', 'delete', ...REMOTE, ...CREDENTIAL],
  ['backup', 'list', ...REMOTE],
  ['backup', 'create', ...REMOTE],
  ['backup', 'show', newId.make('bkp'), ...REMOTE],
  ['backup', 'download', newId.make('bkp'), ...REMOTE],
  ['backup', 'keygen', '--out', 'backup.key'],
  ['publish', ...REMOTE, '--package', 'missing'],
  ['release', ...REMOTE, '--package', 'missing'],
  ['diff', ...REMOTE, '--package', 'missing'],
  ['build', '--root', 'root', '--workspace', 'missing'],
  ['codegen', '--workspace', 'missing'],
  ['mcp', ...REMOTE, '--allow', 'everything'],
  ['mcp', 'allow', 'data:read', ...REMOTE],
  ['mcp', 'deny', ...REMOTE],
  ['mcp', 'permissions'],
  ['mcp', 'rejections'],
  ['backup', 'verify', 'missing', '--identity', 'missing'],
  ['dev', '--root', 'root', '--port', 'none'],
  ['dev', 'hook', 'stripe', '--file', 'missing'],
  ['console', ...REMOTE],
  ['freeze', 'chat', '--url', 'https://app.test'],
  ['upgrade', '--check'],
  ['init', '--root', 'new', '--workspace', 'missing'],
  ['login', '--url', 'https://x', '--code-env', 'UNSET'],
  ['call', 'f.g', ...REMOTE, '--url', 'https://x', '--key-env', 'UNSET', '--target', 'channel:x'],
  ['openapi', ...REMOTE, '--url', 'https://x', '--key-env', 'UNSET', '--target', 'channel:x'],
  ['watch', 'f.g', ...REMOTE, '--url', 'https://x', '--key-env', 'UNSET', '--target', 'channel:x'],
]

describe('--json', () => {
  it('every command is tested with --json', () => {
    const tried = LINES.map((line) => line.slice(0, 3).join(' '))
    for (const { name } of COMMANDS) {
      expect(tried.some((line) => `${line} `.startsWith(`${name} `))).toBe(true)
    }
  })

  it.each(LINES)('prints exactly one document on stdout: %s %s', async (...line) => {
    for (const intercept of [() => null, () => failure('PLATFORM_ACCESS_DENIED')]) {
      server.intercept = intercept
      const ran = await client.run(...line, '--json')
      const document = JSON.parse(ran.out)
      expect(document.error === undefined).toBe(ran.exit === 0)
      expect(ran.err.replace(/^(?:warning: .+|operation opn_\w+)\n$/, '')).toBe('')
    }
  })

  it.each([
    ['statsu', '--json'],
    ['--json'],
    ['--json', '--help'],
    ['status', '--help', '--json'],
    ['status', '--json', '--json'],
    ['status', '--json=1'],
  ])('prints one document for %j %j', async (...line) => {
    const ran = await client.run(...line)
    if (line.includes('--json')) JSON.parse(ran.out)
    else expect(ran.out).toBe('')
  })
})

describe('help', () => {
  it.each([
    [
      ['buckets', '--help'],
      ['svc buckets <command>', 'buckets keys issue', 'buckets list'],
    ],
    [
      ['buckets', 'keys', '-h'],
      ['svc buckets keys <command>', 'buckets keys rotate'],
    ],
    [
      ['help', 'config'],
      ['config set', 'config history'],
    ],
    [
      ['operators', '--help'],
      ['operators list', 'operators disable'],
    ],
    [
      ['help', 'data', 'query'],
      ['svc data query <TABLE>', '--where'],
    ],
    [['help', '--json', 'call'], ['"call"']],
    [
      ['logs', '--help'],
      ['--follow', 'Further commands', 'logs prune'],
    ],
  ])('the help of %j names the commands that it has', async (line, texts) => {
    const { exit, out, err } = await client.run(...line)
    expect([exit, err]).toEqual([0, ''])
    for (const text of texts) expect(out).toContain(text)
  })

  it('help without a command equals the help of the program', async () => {
    const [asked, plain] = [await client.run('help'), await client.run('--help')]
    expect(asked).toEqual(plain)
    const unknown = await client.run('help', 'statsu')
    expect(unknown).toMatchObject({ exit: 2, err: expect.stringContaining('Did you mean status?') })
  })

  it('the help of the program and of every command equals the golden file', async () => {
    const texts = [(await client.run()).out, (await client.run('--help')).out]
    expect(texts[0]).toBe(texts[1])
    for (const { name } of COMMANDS) {
      const ran = await client.run(...name.split(' '), '--help')
      expect([ran.exit, ran.err]).toEqual([0, ''])
      texts.push(ran.out)
    }
    const golden = join(import.meta.dirname, '../../testing/client/help.txt')
    await expect(texts.slice(1).join('\n')).toMatchFileSnapshot(golden)
    for (const line of texts.join('\n').split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })

  it('-h prints the help, and --version the version', async () => {
    expect((await client.run('status', '-h')).out).toMatch(/^Usage:\n {2}\$ svc status \[options\]/)
    expect((await client.run('--version')).out).toBe(`svc ${VERSION}\n`)
  })
})

describe('the process', () => {
  it('ends with the exit code and writes to its own streams', { tags: ['slow'] }, async () => {
    const done = await runProcess(client, [...STATUS, '--json'])
    expect([done.exit, done.err]).toEqual([0, ''])
    expect(JSON.parse(done.out)).toEqual(server.status())
    const failed = await runProcess(client, ['statsu'])
    expect([failed.exit, failed.out]).toEqual([2, ''])
    expect(failed.err).toMatch(/^svc: CLIENT_USAGE: .+\n {2}See `svc --help`\.\n$/)
  })

  it('fails if its result cannot be written, and names what was not delivered', {
    tags: ['slow'],
  }, async () => {
    const full = openSync('/dev/full', 'w')
    const run = (...line: string[]) => runProcess(client, line, undefined, full)
    const create = ['credentials', 'create', ...REMOTE, '--client', CLIENT_ID, '--name', 'ci']
    const invite = ['--operator-name', 'ana', '--role', 'observer', '--scope', 'installation']
    const [key, code, json] = await Promise.all([
      run(...create),
      run('invite', ...invite),
      run(...STATUS, '--json'),
    ])
    expect([key.exit, key.err]).toEqual([
      1,
      expect.stringMatching(/ENOSPC\.\n {2}Revoke crd_\w+, /),
    ])
    expect([code.exit, code.err]).toEqual([9, expect.stringContaining('invitations revoke opi_')])
    expect([json.exit, json.err]).toEqual([1, expect.stringContaining('CLIENT_FILE_FAILED')])
    closeSync(full)
  })

  it('succeeds if its reader closes the pipe', { tags: ['slow'] }, async () => {
    const ran = await runProcess(client, ['--help'], (child) => child.stdout?.destroy())
    expect([ran.exit, ran.err]).toEqual([0, ''])
  })

  it('ends with 130 soon after an interrupt', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    const asked = new Promise<void>((resolve) => silent.once('request', () => resolve()))
    await new Promise((resolve) => silent.once('listening', resolve))
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const started = performance.now()
    const argv = ['login', '--url', url, '--code-env', 'SVC_CODE', '--json']
    const ran = await runProcess(client, argv, (child) => {
      void asked.then(() => child.kill('SIGINT'))
    })
    silent.closeAllConnections()
    silent.close()
    expect([ran.exit, JSON.parse(ran.out).error.code]).toEqual([130, 'CLIENT_INTERRUPTED'])
    expect(performance.now() - started).toBeLessThan(60_000)
  })
})
