import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { idMillis } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import { FakeServer, failure, newId, type Recorded } from '../testing/fake-server.ts'
import { TestClient } from '../testing/test-client.ts'

const SECRET = 'sk_live_51H8xJ2eZvKYlo2C'
const REMOTE = ['--remote', '--root', 'root']
const OPERATOR = newId.make('opr')
const MICROS = '1800000000000000'

let server: FakeServer
let client: TestClient
/** Of the whole configuration, as the server has it. */
let revision: string
let entries: Json[]

beforeEach(async () => {
  server = await new FakeServer().start()
  client = await new TestClient().linked(server)
  server.requests.length = 0
  revision = '4'
  entries = []
  server.intercept = (request) => ({ status: 200, body: answerOf(request) })
})

afterEach(() => {
  server.stop()
  client[Symbol.dispose]()
})

function answerOf({ method, path, headers, body }: Recorded): Json {
  if (path === `${server.base}/configuration`) return { version: 1, revision, entries }
  const change = { revision, name: 'API_KEY', operatorId: OPERATOR, changedAtMicros: MICROS }
  if (method === 'GET') {
    const set = { ...change, kind: 'secret', action: 'set' }
    return { version: 1, entries: revision === '0' ? [] : [set], next: '4' }
  }
  const name = path.split('/').at(-1)!
  const { kind = 'secret', expectedRevision } = JSON.parse(body) as { [key: string]: string }
  const action = method === 'PUT' ? 'set' : 'delete'
  const next = String(BigInt(expectedRevision!) + 1n)
  return {
    version: 1,
    change: { ...change, name, kind, action, revision: next },
    operation: {
      version: 1,
      operationId: String(headers['idempotency-key']),
      kind: `configuration.${action}`,
      outcome: 'applied',
      replayed: false,
      revision: next,
      createdAtMicros: MICROS,
    },
  }
}

/** Bodies of the changes, oldest first. */
function changes(): { [key: string]: Json }[] {
  return server.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ body }) => JSON.parse(body))
}

function set(...args: string[]) {
  return client.run('config', 'set', ...args, ...REMOTE)
}

describe('config set', () => {
  it('takes the value of a variable as it was typed', async () => {
    for (const value of ['hello', '007', ' two  words ', '{"a":1}', ''])
      await set('GREETING', value)
    expect(changes().map(({ kind, value }) => [kind, value])).toEqual([
      ['variable', 'hello'],
      ['variable', '007'],
      ['variable', ' two  words '],
      ['variable', '{"a":1}'],
      ['variable', ''],
    ])
  })

  it.each([
    ['one line', SECRET, SECRET],
    ['the line feed of echo', `${SECRET}\n`, SECRET],
    ['a file of Windows', `${SECRET}\r\n`, SECRET],
    [
      'several lines',
      '-----BEGIN-----\nAA==\n-----END-----\n',
      '-----BEGIN-----\nAA==\n-----END-----',
    ],
    ['white space that belongs to it', ` ${SECRET} \n\n`, ` ${SECRET} \n`],
  ])('reads a secret from standard input: %s', async (_, stdin, value) => {
    client.stdin = stdin
    const ran = await set('API_KEY', '--secret')
    expect([ran.exit, ran.out]).toEqual([0, 'Set: secret API_KEY, revision 5.\n'])
    expect(changes()).toMatchObject([{ kind: 'secret', value }])
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  it('reads a value from the variable that --value-env names, exactly', async () => {
    client.variables.KEY = ` ${SECRET}\n`
    client.stdin = 'not this'
    await set('API_KEY', '--secret', '--value-env', 'KEY')
    await set('GREETING', '--value-env', 'KEY')
    expect(changes()).toMatchObject([
      { kind: 'secret', value: ` ${SECRET}\n` },
      { kind: 'variable', value: ` ${SECRET}\n` },
    ])
  })

  it('asks for a secret on a terminal, without showing it', async () => {
    client.typed = [SECRET]
    const ran = await set('API_KEY', '--secret')
    expect([ran.exit, changes()[0]!.value]).toEqual([0, SECRET])
    expect(ran.err).toContain('Secret: ')
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  it.each<[string, string[]]>([
    ['a secret as an argument', ['API_KEY', SECRET, '--secret']],
    ['a secret as an argument and a variable', ['API_KEY', SECRET, '--secret', '--value-env', 'X']],
    [
      'a secret where the name of its variable belongs',
      ['K', '--secret', '--value-env', 'rk_sec_v1_x'],
    ],
    ['a secret in the place of the name', [SECRET, '--secret']],
    ['a variable that is not set', ['API_KEY', '--secret', '--value-env', 'NOT_SET']],
    ['an empty secret', ['API_KEY', '--secret']],
    ['a value from two places', ['GREETING', 'hello', '--value-env', 'KEY']],
    ['a lower-case name', ['greeting', 'hello']],
    ['a revision that is none', ['GREETING', 'hello', '--expected', 'newest']],
    ['another identifier', ['GREETING', 'hello', '--operation-id', OPERATOR]],
    ['too much', ['GREETING', 'x'.repeat(32_769)]],
  ])('refuses %s, repeats no value and sends nothing', async (_, args) => {
    const ran = await set(...args)
    expect([ran.exit, server.requests]).toEqual([2, []])
    expect(ran.out + ran.err).not.toMatch(/sk_live|rk_sec_v1_x|hello|xxxx/)
  })

  it('refuses standard input that is too long', async () => {
    client.stdin = 'x'.repeat(32_769)
    expect((await set('API_KEY', '--secret')).exit).toBe(2)
    client.stdin = 'x'.repeat(32_768)
    expect((await set('API_KEY', '--secret')).exit).toBe(0)
  })

  it('expects the newest revision, or the one that is given', async () => {
    await set('GREETING', 'hello')
    revision = '0'
    await set('GREETING', 'hello')
    server.requests.length = 0
    await set('GREETING', 'hello', '--expected', '7')
    expect(changes().map(({ expectedRevision }) => expectedRevision)).toEqual(['7'])
    expect(server.requests.map(({ method }) => method)).toEqual(['PUT'])
  })

  it('is the same request for the same line with the same Operation ID', async () => {
    const operationId = newId.make('opn')
    const line = ['GREETING', 'hello', '--expected', '7', '--operation-id', operationId]
    await set(...line)
    await set(...line)
    const [first, second] = server.requests
    expect([first!.body, first!.headers['idempotency-key']]).toEqual([
      second!.body,
      second!.headers['idempotency-key'],
    ])
    expect(JSON.parse(first!.body).changedAtMicros).toBe(`${idMillis(operationId)}000`)
  })

  it('sends the same bytes again when the answer is lost', async () => {
    let lost = 0
    server.intercept = (request) => {
      if (request.method === 'PUT' && lost++ === 0) return 'drop-after'
      return { status: 200, body: answerOf(request) }
    }
    expect((await set('GREETING', 'hello')).exit).toBe(0)
    const sent = server.requests.filter(({ method }) => method === 'PUT')
    expect(sent).toHaveLength(2)
    expect(sent[0]!.body).toBe(sent[1]!.body)
    expect(sent[0]!.headers['idempotency-key']).toBe(sent[1]!.headers['idempotency-key'])
  })

  it('ends with 4 where somebody else was faster', async () => {
    server.intercept = (request) =>
      request.method === 'PUT'
        ? failure('PRODUCT_CAS_CONFLICT')
        : { status: 200, body: answerOf(request) }
    expect((await set('GREETING', 'hello')).exit).toBe(4)
  })
})

describe('config list', () => {
  it('shows values of variables, shortened on a line, and none of secrets', async () => {
    const times = { revision: '2', createdAtMicros: MICROS, updatedAtMicros: MICROS }
    const long = `${'x'.repeat(70)}\u001b[31m`
    entries = [
      { name: 'API_KEY', kind: 'secret', ...times },
      { name: 'LONG', kind: 'variable', value: long, ...times },
    ]
    const human = await client.run('config', 'list', ...REMOTE)
    expect(human.out).toMatch(/^API_KEY +secret +\(sealed\) +2 /m)
    expect(human.out).toMatch(/^LONG +variable +x{60}\.\.\. +2 /m)
    expect(human.out).not.toContain('\u001b')
    const json = await client.run('config', 'list', ...REMOTE, '--json')
    expect(JSON.parse(json.out)).toEqual({ version: 1, revision: '4', entries })
  })

  it('takes no answer in which a secret has a value', async () => {
    const times = { revision: '2', createdAtMicros: MICROS, updatedAtMicros: MICROS }
    entries = [{ name: 'API_KEY', kind: 'secret', value: SECRET, ...times }]
    const ran = await client.run('config', 'list', ...REMOTE, '--json')
    expect(ran.exit).not.toBe(0)
    expect(ran.out + ran.err).not.toContain(SECRET)
  })
})

it('config unset deletes at the newest revision', async () => {
  const ran = await client.run('config', 'unset', 'API_KEY', ...REMOTE)
  expect([ran.exit, ran.out]).toEqual([0, 'Deleted: secret API_KEY, revision 5.\n'])
  const [sent] = server.asked('DELETE', `${server.base}/configuration/API_KEY`)
  expect(JSON.parse(sent!.body)).toEqual({
    expectedRevision: '4',
    changedAtMicros: expect.any(String),
  })
})

it('config history shows a page and how to get the next', async () => {
  const ran = await client.run('config', 'history', ...REMOTE, '--limit', '1')
  expect(ran.out).toMatch(/^4 +set +secret +API_KEY +opr_/m)
  expect(ran.err).toContain('More: --after 4')
  expect(server.requests[0]!.path).toBe(`${server.base}/configuration/history?limit=1`)
  expect((await client.run('config', 'history', ...REMOTE, '--limit', '1001')).exit).toBe(2)
})
