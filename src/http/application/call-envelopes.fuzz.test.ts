/**
 * Fuzzes the application origin in this process: every response has a documented status and
 * envelope, and none is an internal error.
 */
import { afterAll, beforeAll, expect } from 'vitest'
import {
  fuzz,
  mutatedBytes,
  mutatedJson,
  mutatedText,
  type Random,
} from '../../../testing/fuzzing/fuzz.ts'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { CODES } from '../../errors/codes.ts'
import { KINDS } from '../../errors/kinds.ts'

const ANY = { type: 'optional', inner: { type: 'any' } } as const
const more = {
  clients: ['confidential'],
  arguments: { input: ANY },
  returns: { type: 'any' },
} as const

let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [
      functionManifest('notes.add', { ...more, kind: 'mutation' }),
      functionManifest('notes.echo', more),
      functionManifest('notes.named', { ...more, arguments: { name: { type: 'string' } } }),
      functionManifest('notes.secret', { ...more, visibility: 'internal' }),
    ],
    tables: [{ name: 'notes', fields: { text: ANY }, indexes: [] }],
    handlers: {
      'notes.add': (db, { input }) =>
        db.insert('notes', input === undefined ? {} : { text: input }),
      'notes.echo': (_, { input }) => input,
      'notes.named': (_, { name }) => name,
    },
  })
})
afterAll(() => gateway.close())

const OPERATION_IDS = ['opn_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'opn_01ARZ3NDEKTSV4RRFFQ69G5FAW']

function envelope(random: Random): Record<string, unknown> {
  const input = {
    type: 'object',
    value: [
      { key: 'a', value: { type: 'int64', value: '7' } },
      {
        key: 'b',
        value: { type: 'array', value: [{ type: 'null' }, { type: 'bytes', value: '-_8' }] },
      },
    ],
  }
  const name = random.pick(['notes.add', 'notes.echo', 'notes.named', 'notes.secret'])
  const key = name === 'notes.named' ? 'name' : 'input'
  const value = key === 'name' ? { type: 'string', value: 'x' } : input
  return {
    version: 1,
    target: random.pick([
      'channel:production',
      'environment:default',
      'workspace:default',
      `release:${gateway.releaseId}`,
    ]),
    function: name,
    arguments: { type: 'object', value: [{ key, value }] },
    ...(!random.chance(2) && { operationId: random.pick(OPERATION_IDS) }),
  }
}

function bodyOf(random: Random): string | Uint8Array<ArrayBuffer> {
  const valid = envelope(random)
  switch (random.below(4)) {
    case 0:
      return JSON.stringify(mutatedJson(random, valid))
    case 1:
      return mutatedBytes(random, new TextEncoder().encode(JSON.stringify(valid)))
    case 2:
      // Duplicates every key.
      return JSON.stringify(valid).replace(/^\{/, `{"function":"notes.echo",`)
    default:
      return mutatedText(random, JSON.stringify(valid))
  }
}

/** Draws header names and values that HTTP itself permits. */
function headersOf(random: Random): Headers {
  const headers = new Headers({ 'x-service-key': gateway.key, 'content-type': 'application/json' })
  if (!random.chance(3)) return headers
  const name = random.pick([
    'x-service-key',
    'content-type',
    'content-length',
    'origin',
    'authorization',
    'accept',
    'x-service-affinity',
    'transfer-encoding',
    'content-encoding',
    'host',
    'cookie',
  ])
  const value = random.pick([
    '',
    ' ',
    'null',
    'a, b',
    'application/json; charset=utf-16',
    'APPLICATION/JSON',
    '\xff',
    'https://app.example',
    'https://app.example.evil',
    'NaN',
    '-1',
    '1e9',
    '0',
    '99999999999',
    'gzip',
    'chunked',
    gateway.key.slice(0, -1),
    `${gateway.key}a`,
    'Bearer x',
    '*/*',
  ])
  if (random.chance(3)) headers.append(name, value)
  else headers.set(name, value)
  return headers
}

/** Draws a plain call, whose path, headers and JSON are each bent at times. */
function plainRequestOf(random: Random): Request {
  const value = random.pick([
    { type: 'int64', value: '7' },
    { type: 'array', value: [{ type: 'null' }] },
    'x',
    7,
    [{ a: 1.5 }],
  ])
  const name = random.pick(['notes.add', 'notes.echo', 'notes.named', 'notes.secret'])
  const given = name === 'notes.named' ? { name: 'x' } : { input: value }
  const text = JSON.stringify(given)
  const path = random.chance(5) ? mutatedText(random, name) : name
  const headers = headersOf(random)
  headers.set('x-service-target', random.pick(['channel:production', 'channel:production', 'x']))
  if (random.chance(4)) headers.set('idempotency-key', random.pick([...OPERATION_IDS, 'x']))
  if (random.chance(4)) headers.set('x-service-integers', random.pick(['string', 'number']))
  const bent = random.chance(2) ? text : bentText(random, given)
  const url = `http://application.test/v1/functions/${path}`
  if (random.chance(4)) {
    const query = random.chance(4) ? mutatedText(random, '?arguments={}') : '?arguments='
    return new Request(url + query + encodeURIComponent(bent.toWellFormed()), { headers })
  }
  return new Request(url, { method: 'POST', headers, body: bent })
}

function bentText(random: Random, given: object): string {
  const text = JSON.stringify(given)
  if (random.chance(2)) return JSON.stringify(mutatedJson(random, given))
  return random.chance(2) ? text.replace(/^\{/, '{"input":1,') : mutatedText(random, text)
}

function requestOf(random: Random): Request {
  if (random.chance(2)) return plainRequestOf(random)
  const path = random.chance(20)
    ? random.pick(['/', '/v1/query/', '/v1/query?a=1', '/v1//query', '/v1/%71uery', '/v1/action'])
    : random.pick(['/v1/query', '/v1/mutation'])
  const method = random.chance(30) ? random.pick(['GET', 'PUT', 'OPTIONS', 'DELETE']) : 'POST'
  const init: RequestInit = { method, headers: headersOf(random) }
  if (method !== 'GET') init.body = bodyOf(random)
  return new Request(`http://application.test${path}`, init)
}

const STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 409, 410, 413, 415, 503])

const REQUEST_ID = /^req_[0-9A-Z]{26}$/
const SUCCESS = [
  'metadata,releaseId,requestId,result,status,version',
  'metadata,requestId,result,status,version',
]
const FAILURE = 'error,requestId,status,version'

/** Returns why a response is not documented, or null. Assertions would cost more than requests. */
function defect({ status, headers }: Response, text: string): string | null {
  if (status === 204) return null
  const body = JSON.parse(text)
  const keys = Object.keys(body).sort().join()
  if (headers.get('x-content-type-options') !== 'nosniff') return 'content may be sniffed'
  if (!REQUEST_ID.test(body.requestId) || body.version !== 1) return 'no envelope'
  if (headers.get('x-service-request-id') !== body.requestId) return 'two request IDs'
  if (status === 200) return SUCCESS.includes(keys) ? null : 'another envelope of success'
  if (!STATUSES.has(status) || keys !== FAILURE) return 'another envelope of failure'
  const { code, message, retryable } = body.error
  const row = CODES[code as keyof typeof CODES]
  const kind = KINDS[row.kind]
  // On a development target the message also has the argument and the rule.
  const isExplained = code === 'ARGUMENTS_INVALID' && message.startsWith(`${row.message} arguments`)
  const asInTable = kind.status === status && (message === row.message || isExplained)
  return asInTable && retryable === kind.retryable ? null : 'not as in the table of codes'
}

fuzz('any request to the application origin has a documented answer', async (random) => {
  const response = await gateway.application.fetch(requestOf(random))
  const text = await response.text()
  const found = defect(response, text)
  if (found !== null) expect.fail(`${found}: ${response.status} ${text}`)
})
