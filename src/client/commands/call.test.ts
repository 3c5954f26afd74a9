import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  APPLICATION_KEY,
  type FakeServer,
  failure,
  newId,
} from '../../../testing/client/fake-server.ts'
import { catalogFunction, linkedCaller } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'

let server: FakeServer
let client: TestClient

const FUNCTIONS = [
  catalogFunction('messages.list', 'query', {
    arguments: { limit: { type: 'optional', inner: { type: 'int64' } } },
  }),
  catalogFunction('messages.send', 'mutation', {
    arguments: { body: { type: 'string' }, at: { type: 'timestamp' } },
  }),
]

beforeEach(async () => {
  ;({ server, client } = await linkedCaller(FUNCTIONS))
})

function call(...more: string[]) {
  const where = ['--remote', '--root', 'root', '--url', server.origin, '--key-env', 'APP_KEY']
  return client.run('call', ...more, ...where, '--target', 'channel:production')
}

/** The fake server has no TLS. */
function withTls(url: string): string {
  return url.replace('http:', 'https:')
}

const SEND = ['messages.send', '{"body":"hi","at":"1970-01-01T00:00:00.000005Z"}']

describe('svc call', () => {
  it('sends the functional token of a variable, and names a variable that is not set', async () => {
    client.variables.USER = 'header.claims.signature'
    expect((await call(...SEND, '--token-env', 'USER')).exit).toBe(0)
    const [request] = server.requestsTo('POST', '/v1/mutation')
    expect(request!.headers.authorization).toBe('Bearer header.claims.signature')
    const unset = await call(...SEND, '--token-env', 'NOBODY')
    expect([unset.exit, unset.err]).toEqual([2, expect.stringContaining('NOBODY is not set')])
    const misplaced = await call(...SEND, '--token-env', 'header.claims.signature')
    expect([misplaced.exit, misplaced.err.includes('claims')]).toEqual([2, false])
  })

  it('prints a result with hidden characters as JSON that a terminal shows', async () => {
    const value = 'a\u202e\u{e0041}\u009bb'
    server.result = { type: 'string', value }
    const [human, json] = [await call('messages.list'), await call('messages.list', '--json')]
    expect(human.out).toBe('"a\\u202e\\udb40\\udc41\\u009bb"\n')
    expect(JSON.parse(human.out)).toBe(value)
    expect(json.out).toContain('"a\\u202e\\udb40\\udc41\\u009bb"')
    expect(JSON.parse(json.out).result).toBe(value)
  })

  it('sends a Query with its arguments in the declared types', async () => {
    server.result = {
      type: 'array',
      value: [
        { type: 'int64', value: '9223372036854775807' },
        { type: 'timestamp', value: '5' },
      ],
    }
    const ran = await call('messages.list', '{"limit":3}', '--json')
    expect(ran.exit).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({
      result: ['9223372036854775807', '1970-01-01T00:00:00.000005Z'],
      metadata: { kind: 'query', snapshotSequence: '7' },
    })
    const target = 'channel%3Aproduction'
    expect(server.requestsTo('GET', `${server.base}/functions?target=${target}`)).toHaveLength(1)
    const [request] = server.requestsTo('POST', '/v1/query')
    expect(request!.headers['x-service-key']).toBe(APPLICATION_KEY)
    // The session of the operator is never sent to the application origin.
    expect(request!.headers.authorization).toBeUndefined()
    expect(JSON.parse(request!.body)).toEqual({
      version: 1,
      target: 'channel:production',
      function: 'messages.list',
      arguments: {
        type: 'object',
        value: [{ key: 'limit', value: { type: 'int64', value: '3' } }],
      },
    })
  })

  it('repeats a Mutation with the same operation ID and bytes', async () => {
    let lost = 2
    server.intercept = ({ path }) => (path === '/v1/mutation' && lost-- > 0 ? 'drop-after' : null)
    const ran = await call(...SEND)
    expect(ran).toMatchObject({ exit: 0, out: 'null\n' })
    const sent = server.requestsTo('POST', '/v1/mutation').map(({ body }) => body)
    expect([sent.length, new Set(sent).size]).toEqual([3, 1])
    expect(ran.err).toBe(`operation ${JSON.parse(sent[0]!).operationId}\n`)
  })

  it('never repeats an Action', async () => {
    const uses = { network: ['api.test'], secrets: ['KEY'], storage: 'none' }
    server.functions = [catalogFunction('outside.pay', 'action', { uses })]
    expect(await call('outside.pay')).toMatchObject({ exit: 0, out: 'null\n', err: '' })
    server.requests.length = 0
    server.intercept = ({ path }) => (path === '/v1/action' ? 'drop-after' : null)
    expect((await call('outside.pay')).exit).toBe(9)
    expect(server.requestsTo('POST', '/v1/action')).toHaveLength(1)
    expect((await call('outside.pay', '--operation-id', newId.make('opn'))).exit).toBe(2)
  })

  it('repeats only what the server calls retryable', async () => {
    for (const [code, times, exit] of [
      ['WRITE_CONFLICT', 4, 4],
      ['RESULT_UNCERTAIN', 4, 9],
      ['FUNCTION_FAILED', 1, 1],
      ['ARGUMENTS_INVALID', 1, 8],
    ] as const) {
      server.requests.length = 0
      server.intercept = ({ path }) => (path === '/v1/mutation' ? failure(code) : null)
      expect((await call(...SEND)).exit).toBe(exit)
      expect(server.requestsTo('POST', '/v1/mutation')).toHaveLength(times)
    }
  })

  it('waits for a server that stops as long as a restart takes', { tags: ['slow'] }, async () => {
    let restarts = true
    server.intercept = ({ path }) => {
      const isAway = path === '/v1/mutation' && (!restarts || client.pausedMillis < 16_000)
      return isAway ? failure('UNAVAILABLE') : null
    }
    expect(await call(...SEND)).toMatchObject({ exit: 0, out: 'null\n' })
    const bodies = server.requestsTo('POST', '/v1/mutation').map(({ body }) => body)
    expect(new Set(bodies).size).toBe(1)
    restarts = false
    client.pausedMillis = 0
    expect((await call(...SEND)).exit).toBe(5)
    expect(client.pausedMillis).toBeGreaterThan(18_000)
    expect(client.pausedMillis).toBeLessThan(20_000)
  })

  it('waits for an address that nobody answers at, but not for long', async () => {
    const { fetch: send } = client
    // Nothing listens at port 1.
    const closed = (url: string) => url.replace(/:\d+\//, ':1/')
    client.fetch = (url, init) => send(url.includes('/functions?') ? url : closed(url), init)
    expect((await call(...SEND)).exit).toBe(5)
    expect(client.pausedMillis).toBeGreaterThan(3_500)
    expect(client.pausedMillis).toBeLessThan(5_000)
  })

  it('says how to repeat a Mutation whose response is lost', async () => {
    server.intercept = ({ path }) => (path === '/v1/mutation' ? 'drop' : null)
    const operationId = newId.make('opn')
    const ran = await call(...SEND, '--operation-id', operationId)
    expect(ran.exit).toBe(9)
    expect(ran.err).toContain(`--operation-id ${operationId}`)
  })

  it.each(['messages.send', 'outside.pay'])(
    'reports a call of %s that was never sent as unreachable, not as uncertain',
    async (name) => {
      server.functions = [...FUNCTIONS, catalogFunction('outside.pay', 'action')]
      const { fetch: send } = client
      client.fetch = (url, init) => send(url.includes('/functions?') ? url : withTls(url), init)
      const ran = await call(...(name === SEND[0] ? SEND : [name]))
      expect([ran.exit, ran.err]).toEqual([5, expect.stringContaining('SERVER_UNREACHABLE')])
    },
  )

  it('reports a call as uncertain if only its repeats were never sent', async () => {
    server.intercept = ({ path }) => (path === '/v1/mutation' ? 'drop-after' : null)
    const { fetch: send } = client
    client.fetch = (url, init) =>
      send(server.requestsTo('POST', '/v1/mutation').length > 0 ? withTls(url) : url, init)
    const ran = await call(...SEND)
    expect(server.requestsTo('POST', '/v1/mutation')).toHaveLength(1)
    expect([ran.exit, ran.err]).toEqual([9, expect.stringContaining('Repeat the call')])
  })

  it.each([
    ['messages.list', 'CLIENT_INTERRUPTED: The command was interrupted.\n  Run the command again.'],
    [
      'messages.send',
      'CLIENT_CHANGE_INTERRUPTED: .+\n {2}Repeat the call with --operation-id opn_',
    ],
    ['outside.pay', 'CLIENT_CHANGE_INTERRUPTED: .+ may have been made.\n  Read the current state'],
  ])('says after an interrupt of %s what is safe to do', async (name, said) => {
    server.functions = [...FUNCTIONS, catalogFunction('outside.pay', 'action')]
    server.gate = async ({ method }) => {
      if (method === 'GET') return
      client.interrupt()
      await new Promise(() => {})
    }
    const ran = await call(...(name === SEND[0] ? SEND : [name]))
    expect([ran.exit, ran.err]).toEqual([130, expect.stringMatching(said)])
  })

  it('says that the Environment is archived', async () => {
    server.lifecycle = 'archived'
    server.intercept = ({ method }) => (method === 'POST' ? failure('UNAVAILABLE') : null)
    const ran = await call(...SEND)
    expect([ran.exit, ran.err]).toEqual([
      5,
      expect.stringContaining('The Environment is archived.\n  Run `svc environments restore`'),
    ])
  })

  it('says to write an integer beyond 2^53 as a string', async () => {
    for (const limit of ['9007199254740993', '1e300']) {
      const ran = await call('messages.list', `{"limit":${limit}}`)
      expect([ran.exit, ran.err]).toEqual([8, expect.stringMatching(/2\^53.* string/)])
    }
    await call('messages.list', '{"limit":"9007199254740993"}')
    expect(server.requestsTo('POST', '/v1/query')).toHaveLength(1)
  })

  it('names the scope that a denied call may need, and the record with the rule', async () => {
    server.intercept = ({ path }) =>
      path === '/v1/mutation' ? failure('AUTH_POLICY_DENIED') : null
    const ran = await call(...SEND)
    expect(ran.exit).toBe(3)
    expect(ran.err).toMatch(/Run `svc logs --request (req_\w+)`.*request \1\n/s)
    expect(ran.err).toContain('the scope mutation')
  })

  it('refers to the application for a code that a Function declares', async () => {
    server.intercept = ({ path }) =>
      path === '/v1/mutation' ? failure('APP_CHANNEL_ARCHIVED', 409) : null
    const ran = await call(...SEND)
    expect(ran.exit).toBe(4)
    const said =
      'svc: APP_CHANNEL_ARCHIVED: Said by the server.\n  The Function declares this error'
    expect(ran.err).toContain(said)
  })

  it.each([
    ['{"body":1,"at":"0"}', '$.body: a string'],
    ['{"at":"0"}', '$.body: a required field'],
    ['{"body":"x","at":"soon"}', '$.at: a timestamp'],
    ['{"body":"x","body":"x"}', 'no duplicate key'],
    ['[]', '$: an object'],
    ['{', '$ at character 1'],
  ])('rejects the arguments %s before the call', async (text, rule) => {
    const ran = await call('messages.send', text)
    expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining(rule)])
    expect(server.requestsTo('POST', '/v1/mutation')).toEqual([])
  })

  it('takes arguments from stdin and from a file', async () => {
    client.stdin = '{"limit":1}'
    // With the byte order mark that editors and shells of Windows write.
    writeFileSync(join(client.home, 'a.json'), '\ufeff{"limit":2}')
    await call('messages.list', '-')
    await call('messages.list', '--args-file', 'a.json')
    const limits = server.requestsTo('POST', '/v1/query').map(({ body }) => {
      return JSON.parse(body).arguments.value[0].value.value
    })
    expect(limits).toEqual(['1', '2'])
    expect((await call('messages.list', '-', '--args-file', 'a.json')).exit).toBe(2)
  })

  it('passes tagged values through unchanged', async () => {
    server.result = { type: 'bytes', value: '_-8' }
    const ran = await call('messages.list', '{"type":"object","value":[]}', '--tagged')
    expect(JSON.parse(ran.out)).toEqual({ type: 'bytes', value: '_-8' })
  })

  it('lists the Functions of the target if the name is unknown', async () => {
    const ran = await call('messages.sent', '{}')
    expect([ran.exit, ran.err]).toEqual([
      7,
      expect.stringContaining('messages.list, messages.send'),
    ])
  })

  it('accepts no key as an argument and never prints one', async () => {
    client.variables.APP_KEY = 'rk_dev_v1_secret'
    const wrong = await call(...SEND)
    expect([wrong.exit, wrong.err]).toEqual([2, expect.not.stringContaining('secret')])
    const where = ['--remote', '--root', 'root', '--url', server.origin, '--target', 'channel:x']
    const typed = await client.run('call', ...SEND, ...where, '--key-env', APPLICATION_KEY)
    expect([typed.exit, typed.err]).toEqual([2, expect.not.stringContaining(APPLICATION_KEY)])
    expect(server.requests).toEqual([])
  })

  it('rejects a response of another kind and a result that is not canonical', async () => {
    server.result = { type: 'int64', value: '01' }
    expect((await call('messages.list')).exit).toBe(1)
    server.intercept = ({ path }) => {
      if (path !== '/v1/query') return null
      const metadata = { kind: 'mutation', commitSequence: null, replayed: false, attempts: 1 }
      const ids = { requestId: newId.make('req'), releaseId: newId.make('rel') }
      const body = { version: 1, status: 'ok', ...ids, result: { type: 'null' }, metadata }
      return { status: 200, body }
    }
    const ran = await call('messages.list')
    expect([ran.exit, ran.err]).toEqual([1, expect.stringContaining('CLIENT_RESPONSE_INVALID')])
  })
})
