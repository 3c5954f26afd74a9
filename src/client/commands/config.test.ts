import { beforeEach, describe, expect, it } from 'vitest'
import { type FakeServer, failure, newId } from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../testing/client/test-client.ts'
import { idMillis } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'

const SECRET = 'sk_live_51H8xJ2eZvKYlo2C'
const REMOTE = ['--remote', '--root', 'root']
const OPERATOR = newId.make('opr')
const MICROS = '1800000000000000'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

/** Bodies of the changes, oldest first. */
function changes(): { [key: string]: Json }[] {
  return server.requests
    .filter(({ method }) => method !== 'GET')
    .map(({ body }) => JSON.parse(body))
}

function set(...args: string[]) {
  return client.run('config', 'set', ...args, ...REMOTE)
}

describe('svc config set', () => {
  it('keeps the typed value of a variable', async () => {
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

  it('asks for a secret on a terminal and does not show it', async () => {
    client.typed = [SECRET]
    const ran = await set('API_KEY', '--secret')
    expect([ran.exit, changes()[0]!.value]).toEqual([0, SECRET])
    expect(ran.err).toContain('Secret: ')
    expect(ran.out + ran.err).not.toContain(SECRET)
  })

  it.each<[string, string[], string]>([
    ['a secret as an argument', ['API_KEY', SECRET, '--secret'], 'cannot be an argument'],
    [
      'one beside --value-env',
      ['K', SECRET, '--secret', '--value-env', 'X'],
      'cannot be an argument',
    ],
    ['a secret as --value-env', ['K', '--secret', '--value-env', 'rk_sec_v1_x'], 'not the secret'],
    ['a secret instead of the name', [SECRET, '--secret'], 'NAME needs'],
    ['a variable that is not set', ['K', '--secret', '--value-env', 'NONE'], 'NONE is not set'],
    ['a value from two sources', ['K', 'hello', '--value-env', 'KEY'], 'not both'],
    ['a lower-case name', ['greeting', 'hello'], 'NAME needs'],
    ['a revision that is none', ['K', 'hello', '--expected', 'newest'], '--expected needs'],
    ['another identifier', ['K', 'hello', '--operation-id', OPERATOR], '--operation-id needs'],
    ['too much', ['K', 'x'.repeat(32_769)], '32768 bytes'],
  ])('rejects %s, repeats no value and sends nothing', async (_, args, reason) => {
    client.stdin = 'piped'
    const ran = await set(...args)
    expect([ran.exit, server.requests]).toEqual([2, []])
    expect(ran.err.replace(/\s+/g, ' ')).toContain(reason)
    expect(ran.out + ran.err).not.toMatch(/sk_live|rk_sec_v1_x|hello|xxxx|piped/)
  })

  it('rejects an empty secret', async () => {
    client.stdin = '\n'
    const ran = await set('API_KEY', '--secret')
    expect([ran.exit, ran.err]).toEqual([2, expect.stringContaining('is empty')])
    expect(server.requests).toEqual([])
  })

  it('rejects standard input that is too long', async () => {
    client.stdin = 'x'.repeat(32_769)
    expect((await set('API_KEY', '--secret')).exit).toBe(2)
    client.stdin = 'x'.repeat(32_768)
    expect((await set('API_KEY', '--secret')).exit).toBe(0)
  })

  it('expects the newest revision, or the one that is given', async () => {
    await set('GREETING', 'hello')
    server.configuration.revision = '0'
    await set('GREETING', 'hello')
    const before = server.requests.length
    await set('GREETING', 'hello', '--expected', '7')
    expect(server.requests.slice(before).map(({ method }) => method)).toEqual(['PUT'])
    expect(changes().map(({ expectedRevision }) => expectedRevision)).toEqual(['4', '0', '7'])
  })

  it('sends an equal request for an equal command line with an equal Operation ID', async () => {
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

  it('sends the same bytes again when the response is lost', async () => {
    let lost = 0
    server.intercept = (request) => {
      return request.method === 'PUT' && lost++ === 0 ? 'drop-after' : null
    }
    expect((await set('GREETING', 'hello')).exit).toBe(0)
    const sent = server.requests.filter(({ method }) => method === 'PUT')
    expect(sent).toHaveLength(2)
    expect(sent[0]!.body).toBe(sent[1]!.body)
    expect(sent[0]!.headers['idempotency-key']).toBe(sent[1]!.headers['idempotency-key'])
  })

  it('says how to change the kind of a name', async () => {
    server.intercept = ({ method }) => (method === 'PUT' ? failure('PRODUCT_STATE_CONFLICT') : null)
    const ran = await set('GREETING', 'hello')
    const next = 'Run `svc config unset GREETING`, then set it as a variable again.'
    expect([ran.exit, ran.err]).toEqual([4, expect.stringContaining(next)])
  })

  it('ends with 4 after a concurrent change, and says how to read the revision', async () => {
    server.intercept = (request) =>
      request.method === 'PUT' ? failure('PRODUCT_CAS_CONFLICT') : null
    const ran = await set('GREETING', 'hello')
    expect([ran.exit, ran.err]).toEqual([4, expect.stringContaining('svc config history')])
  })
})

describe('svc config list', () => {
  it('shows shortened values of variables and no values of secrets', async () => {
    const times = { revision: '2', createdAtMicros: MICROS, updatedAtMicros: MICROS }
    const long = `${'x'.repeat(70)}\u001b[31m`
    server.configuration.entries = [
      { name: 'API_KEY', kind: 'secret', ...times },
      { name: 'LONG', kind: 'variable', value: long, ...times },
    ]
    const human = await client.run('config', 'list', ...REMOTE)
    expect(human.out).toMatch(/^API_KEY +secret +\(sealed\) +2 /m)
    expect(human.out).toMatch(/^LONG +variable +x{60}\.\.\. +2 /m)
    expect(human.out).not.toContain('\u001b')
    const json = await client.run('config', 'list', ...REMOTE, '--json')
    expect(JSON.parse(json.out)).toEqual({
      version: 1,
      revision: '4',
      entries: server.configuration.entries,
    })
  })

  it('rejects a response in which a secret has a value', async () => {
    const times = { revision: '2', createdAtMicros: MICROS, updatedAtMicros: MICROS }
    server.configuration.entries = [{ name: 'API_KEY', kind: 'secret', value: SECRET, ...times }]
    const ran = await client.run('config', 'list', ...REMOTE, '--json')
    expect(ran.exit).not.toBe(0)
    expect(ran.out + ran.err).not.toContain(SECRET)
  })
})

it('svc config unset deletes at the newest revision', async () => {
  const ran = await client.run('config', 'unset', 'API_KEY', ...REMOTE)
  expect([ran.exit, ran.out]).toEqual([0, 'Deleted: secret API_KEY, revision 5.\n'])
  const [sent] = server.requestsTo('DELETE', `${server.base}/configuration/API_KEY`)
  expect(JSON.parse(sent!.body)).toEqual({
    expectedRevision: '4',
    changedAtMicros: expect.any(String),
  })
})

it('svc config history shows a page and the cursor of the next one', async () => {
  const ran = await client.run('config', 'history', ...REMOTE, '--limit', '1')
  expect(ran.out).toMatch(/^4 +set +secret +API_KEY +opr_/m)
  expect(ran.err).toContain('More: --after 4')
  expect(server.requests[0]!.path).toBe(`${server.base}/configuration/history?limit=1`)
  expect((await client.run('config', 'history', ...REMOTE, '--limit', '1001')).exit).toBe(2)
})
