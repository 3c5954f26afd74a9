import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DeclaredFailure } from '../../../testing/engine/in-process-pool.ts'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'

const confidential = { clients: ['confidential'] } as const
const string = { type: 'string' } as const
const int64 = { type: 'int64' } as const
const note = {
  type: 'object',
  fields: {
    _id: { type: 'id', table: 'notes' },
    _createdAt: { type: 'timestamp' },
    _revision: int64,
    text: string,
    count: int64,
  },
} as const

let t: TestGateway
let runs = 0
beforeAll(async () => {
  t = await openTestGateway({
    functions: [
      functionManifest('admin/users.$list', { ...confidential, returns: string }),
      functionManifest('notes.add', {
        ...confidential,
        kind: 'mutation',
        arguments: {
          text: string,
          count: { type: 'optional', inner: int64, default: { $i: '1' } },
        },
        returns: { type: 'id', table: 'notes' },
        errors: { TAKEN: 'conflict' },
      }),
      functionManifest('notes.get', {
        ...confidential,
        arguments: { id: { type: 'id', table: 'notes' } },
        returns: note,
      }),
      functionManifest('notes.echo', {
        ...confidential,
        arguments: { value: { type: 'any' } },
        returns: { type: 'any' },
      }),
      functionManifest('notes.big', {
        ...confidential,
        arguments: { value: int64 },
        returns: int64,
      }),
      functionManifest('notes.send', {
        ...confidential,
        kind: 'action',
        uses: { network: [], secrets: [] },
        arguments: { at: { type: 'timestamp' } },
        returns: { type: 'timestamp' },
      }),
      functionManifest('notes.log', {
        ...confidential,
        kind: 'mutation',
        arguments: { text: string },
        returns: string,
      }),
      functionManifest('notes.secret', { ...confidential, visibility: 'internal' }),
      functionManifest('notes.mine', { ...confidential, auth: 'user' }),
      functionManifest('notes.shared', { clients: ['public'], returns: string }),
      functionManifest('openapi.json', { ...confidential, returns: string }),
    ].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    tables: [{ name: 'notes', fields: { text: string, count: int64 }, indexes: [] }],
    handlers: {
      'admin/users.$list': () => 'users',
      'notes.add': (db, { text, count }) => {
        runs += 1
        if (text === 'taken') throw new DeclaredFailure('TAKEN')
        return db.insert('notes', { text, count })
      },
      'notes.get': async (db, { id }) => db.get(id.$d ?? id),
      'notes.echo': (_, { value }) => value,
      'notes.big': (_, { value }) => value,
      'notes.send': (_, { at }) => at,
      'notes.log': (_, { text }) => text,
      'notes.mine': () => null,
      'notes.shared': () => 'shared',
      'openapi.json': () => 'a Function',
    },
  })
})
afterAll(() => t.close())

interface Sent {
  readonly method?: string
  readonly body?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

async function send(path: string, { method = 'POST', body = '{}', headers = {} }: Sent = {}) {
  const hasBody = method !== 'GET' && method !== 'OPTIONS' && body !== null
  const response = await t.application.fetch(
    new Request(`http://svc.test${path}`, {
      method,
      headers: {
        'x-service-key': t.key,
        'x-service-target': 'channel:production',
        ...(hasBody && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(hasBody && { body }),
    }),
  )
  const bytes = await response.bytes()
  const isCompressed = response.headers.get('content-encoding') === 'gzip'
  const text = new TextDecoder().decode(isCompressed ? Bun.gunzipSync(bytes) : bytes)
  return { response, text, json: text === '' ? null : JSON.parse(text) }
}

const call = (name: string, json: unknown = {}, sent: Sent = {}) => {
  return send(`/v1/functions/${name}`, { ...sent, body: JSON.stringify(json) })
}
const get = (name: string, query = '', sent: Sent = {}) => {
  return send(`/v1/functions/${name}${query}`, { ...sent, method: 'GET' })
}
const failure = async (sending: ReturnType<typeof send>): Promise<string> => {
  const { response, json } = await sending
  return `${response.status} ${json.error?.code}`
}
const newOperation = () => t.harness.system.ids.make('opn')

test('a long result of a Query is compressed, cached or not, and no other', async () => {
  const headers = { 'accept-encoding': 'gzip' }
  const text = 'long '.repeat(1_000)
  const coding = async (sending: ReturnType<typeof send>) => {
    const { response, json } = await sending
    return [response.headers.get('content-encoding'), json.result]
  }
  const value = { type: 'string', value: text }
  for (let i = 0; i < 3; i++) {
    expect(await coding(call('notes.echo', { value }, { headers }))).toEqual(['gzip', value])
  }
  expect(await coding(call('notes.log', { text }, { headers }))).toEqual([null, text])
})

describe('a call', () => {
  test('a Mutation answers with the operation ID that the server made', async () => {
    const { response, json } = await call('notes.add', { text: 'x' })
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-service-release-id')).toBe(t.releaseId)
    expect(json).toEqual({
      version: 1,
      status: 'ok',
      requestId: response.headers.get('x-service-request-id'),
      result: expect.stringMatching(/^notes_/),
      metadata: {
        kind: 'mutation',
        operationId: expect.stringMatching(/^opn_/),
        commitSequence: expect.any(String),
        replayed: false,
        attempts: 1,
      },
    })
  })

  test('a Query has the plain form of a document, with its defaults', async () => {
    const { json: added } = await call('notes.add', { text: 'read me' })
    const posted = await call('notes.get', { id: added.result })
    expect(posted.json.result).toEqual({
      _id: added.result,
      _createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z$/),
      _revision: expect.any(Number),
      text: 'read me',
      count: 1,
    })
    expect(posted.json.metadata).toEqual({
      kind: 'query',
      snapshotSequence: added.metadata.commitSequence,
    })
    const query = `?arguments=${encodeURIComponent(JSON.stringify({ id: added.result }))}`
    const { response, json } = await get('notes.get', query)
    expect(json.result).toEqual(posted.json.result)
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  test('a cached result has the same plain form in both forms of integers', async () => {
    for (let i = 0; i < 4; i++) {
      expect((await call('notes.big', { value: 5 })).json.result).toBe(5)
      const headers = { 'x-service-integers': 'string' }
      expect((await call('notes.big', { value: '5' }, { headers })).json.result).toBe('5')
    }
  })

  test('an Action reads and answers timestamps', async () => {
    const { json } = await call('notes.send', { at: '2026-01-31T12:00:00.000001+01:00' })
    expect(json.result).toBe('2026-01-31T11:00:00.000001Z')
    expect(json.metadata).toEqual({ kind: 'action', schedulesCreated: '0' })
    const micros = await call('notes.send', { at: 1_500_000 })
    expect(micros.json.result).toBe('1970-01-01T00:00:01.500000Z')
  })

  test('an int64 beyond 2^53 is a string in both directions', async () => {
    const value = '9007199254740993'
    expect((await call('notes.big', { value })).json.result).toBe(value)
    const rounded = send('/v1/functions/notes.big', { body: `{"value":${value}}` })
    expect(await failure(rounded)).toBe('400 ARGUMENTS_INVALID')
  })

  test('a value of any is tagged, in and out', async () => {
    const value = { type: 'int64', value: '5' }
    expect((await call('notes.echo', { value })).json.result).toEqual(value)
    expect(await failure(call('notes.echo', { value: 5 }))).toBe('400 ARGUMENTS_INVALID')
  })

  test('a declared error has its status and code', async () => {
    expect(await failure(call('notes.add', { text: 'taken' }))).toBe('409 APP_TAKEN')
  })

  test('the target is environment:default where the request names none', async () => {
    const headers = { 'x-service-key': t.key, 'content-type': 'application/json' }
    const request = new Request('http://svc.test/v1/functions/notes.big', {
      method: 'POST',
      headers,
      body: '{"value":1}',
    })
    const response = await t.application.fetch(request)
    // This server has no serving policy, so that target names nothing.
    expect(await response.json()).toMatchObject({ error: { code: 'TARGET_NOT_FOUND' } })
  })
})

describe('a repeat of a Mutation', () => {
  test('a repeat with the operation ID answers the recorded result', async () => {
    const headers = { 'idempotency-key': newOperation() }
    const before = runs
    const first = await call('notes.add', { text: 'once', count: 5 }, { headers })
    const again = await call('notes.add', { count: '5', text: 'once' }, { headers })
    expect(again.json.result).toBe(first.json.result)
    expect(again.json.metadata).toEqual({ ...first.json.metadata, replayed: true })
    expect(runs).toBe(before + 1)
    const other = call('notes.add', { text: 'twice' }, { headers })
    expect(await failure(other)).toBe('409 OPERATION_REUSED')
  })

  test('a tagged call repeats a plain one, and the reverse', async () => {
    const operationId = newOperation()
    const headers = { 'idempotency-key': operationId }
    const first = await call('notes.add', { text: 'both' }, { headers })
    const envelope = {
      version: 1,
      target: 'channel:production',
      function: 'notes.add',
      arguments: {
        type: 'object',
        value: [{ key: 'text', value: { type: 'string', value: 'both' } }],
      },
      operationId,
    }
    const tagged = await send('/v1/mutation', { body: JSON.stringify(envelope) })
    expect(tagged.json.metadata.replayed).toBe(true)
    expect(tagged.json.result).toEqual({ type: 'typed_id', value: first.json.result })
  })

  test('calls without an operation ID run each time', async () => {
    const [first, second] = [
      await call('notes.add', { text: 'x' }),
      await call('notes.add', { text: 'x' }),
    ]
    expect(first.json.result).not.toBe(second.json.result)
    expect(first.json.metadata.operationId).not.toBe(second.json.metadata.operationId)
  })
})

describe('paths', () => {
  test.each([
    ['admin/users.$list', '200'],
    ['admin%2Fusers.%24list', '200'],
    ['admin%2fusers.$list', '404'],
    ['%61dmin/users.$list', '404'],
    ['admin%252Fusers.$list', '404'],
    ['/admin/users.$list', '404'],
    ['admin/users.$list/', '404'],
    ['admin/../admin/users.$list', '200'],
    ['users.$list;x=1', '404'],
    ['users', '404'],
    ['', '404'],
    [`${'a'.repeat(600)}.b`, '404'],
  ])('%s is answered with %s', async (name, status) => {
    const { response, json } = await call(name)
    expect(String(response.status)).toBe(status)
    if (status === '404') expect(json.error.code).toBe('ROUTE_NOT_FOUND')
    else expect(json.result).toBe('users')
  })

  test('an unknown and an internal Function are not found', async () => {
    expect(await failure(call('notes.none'))).toBe('404 FUNCTION_NOT_FOUND')
    expect(await failure(call('notes.secret'))).toBe('404 FUNCTION_NOT_FOUND')
  })

  test('GET calls Queries alone', async () => {
    for (const name of ['notes.add', 'notes.send']) {
      const { response, json } = await get(name)
      expect(`${response.status} ${json.error.code}`).toBe('405 METHOD_NOT_ALLOWED')
      expect(response.headers.get('allow')).toBe('POST, OPTIONS')
    }
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const { response } = await send('/v1/functions/notes.add', { method, body: null })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('POST, GET, OPTIONS')
    }
  })

  test('a Function named as the document is called by POST', async () => {
    expect((await call('openapi.json')).json.result).toBe('a Function')
    expect((await get('openapi.json', '?target=channel:production')).json.openapi).toBe('3.1.1')
  })
})

describe('hostile requests', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  test.each([
    ['no JSON', '{', '400 REQUEST_INVALID'],
    ['no body', '', '400 REQUEST_INVALID'],
    ['two documents', '{}{}', '400 REQUEST_INVALID'],
    ['a duplicate key', '{"value":1,"value":2}', '400 REQUEST_INVALID'],
    ['an escaped duplicate key', '{"value":1,"\\u0076alue":2}', '400 REQUEST_INVALID'],
    ['a prototype', '{"__proto__":{"value":1}}', '400 REQUEST_INVALID'],
    ['an escaped prototype', '{"__\\u0070roto__":1}', '400 REQUEST_INVALID'],
    ['a constructor', '{"constructor":1}', '400 ARGUMENTS_INVALID'],
    ['a number out of range', '{"value":1e400}', '400 REQUEST_INVALID'],
    ['an integer that is rounded', '{"value":9007199254740993}', '400 ARGUMENTS_INVALID'],
    ['a lone surrogate', '{"value":"\\ud800"}', '400 REQUEST_INVALID'],
    ['NaN', '{"value":NaN}', '400 REQUEST_INVALID'],
    ['10,000 levels', `{"value":${deep(10_000)}}`, '400 REQUEST_INVALID'],
    ['10,001 entries', `{"value":[${'1,'.repeat(10_000)}1]}`, '400 REQUEST_INVALID'],
    ['an array', '[]', '400 ARGUMENTS_INVALID'],
    ['null', 'null', '400 ARGUMENTS_INVALID'],
    ['an undeclared field', '{"value":1,"more":1}', '400 ARGUMENTS_INVALID'],
    ['a tagged envelope', '{"type":"object","value":[]}', '400 ARGUMENTS_INVALID'],
  ])('%s is rejected', async (_, body, expected) => {
    expect(await failure(send('/v1/functions/notes.big', { body }))).toBe(expected)
  })

  test.each([
    ['no query', '', '400 ARGUMENTS_INVALID'],
    ['another parameter', '?args={}', '400 REQUEST_INVALID'],
    ['two parameters', '?arguments={}&arguments={}', '400 REQUEST_INVALID'],
    ['one more parameter', '?arguments={}&target=x', '400 REQUEST_INVALID'],
    ['no value', '?arguments', '400 REQUEST_INVALID'],
    ['an encoding that is no UTF-8', '?arguments=%ff', '400 REQUEST_INVALID'],
    ['a malformed encoding', '?arguments=%zz', '400 REQUEST_INVALID'],
    ['a lone surrogate', '?arguments=%ed%a0%80', '400 REQUEST_INVALID'],
    ['too long', `?arguments=%22${'a'.repeat(8 * 1024)}%22`, '413 LIMIT_EXCEEDED'],
    ['a duplicate key', '?arguments={%22value%22:1,%22value%22:2}', '400 REQUEST_INVALID'],
  ])('GET with %s is rejected', async (_, query, expected) => {
    expect(await failure(get('notes.big', query))).toBe(expected)
  })

  test.each([
    ['x-service-integers', 'number', '400 REQUEST_INVALID'],
    ['x-service-integers', 'string, string', '400 REQUEST_INVALID'],
    ['x-service-target', 'production', '400 REQUEST_INVALID'],
    ['x-service-target', '', '400 REQUEST_INVALID'],
    ['x-service-target', `channel:${'a'.repeat(200)}`, '400 REQUEST_INVALID'],
    ['x-service-target', 'channel:production, channel:production', '400 REQUEST_INVALID'],
    ['idempotency-key', 'x', '400 REQUEST_INVALID'],
    ['idempotency-key', 'opn_01ARZ3NDEKTSV4RRFFQ69G5FAV', '400 REQUEST_INVALID'],
    ['content-type', 'text/plain', '415 MEDIA_TYPE_UNSUPPORTED'],
    ['content-encoding', 'gzip', '415 MEDIA_TYPE_UNSUPPORTED'],
    ['x-service-key', 'rk_sec_v1_x', '401 APPLICATION_KEY_INVALID'],
  ])('the header %s: %s is rejected for a Query', async (name, value, expected) => {
    expect(await failure(call('notes.big', { value: 1 }, { headers: { [name]: value } }))).toBe(
      expected,
    )
  })

  test('an Action rejects an operation ID, which would promise that it runs once', async () => {
    const headers = { 'idempotency-key': newOperation() }
    expect(await failure(call('notes.send', { at: 1 }, { headers }))).toBe('400 REQUEST_INVALID')
  })

  test('POST rejects a query, and GET a body', async () => {
    expect(await failure(send('/v1/functions/notes.big?arguments={}'))).toBe('400 REQUEST_INVALID')
    const headers = { 'content-length': '2' }
    expect(await failure(get('notes.big', '?arguments={}', { headers }))).toBe(
      '400 REQUEST_INVALID',
    )
  })

  test('key, policy and identity come before the arguments', async () => {
    const publicKey = { 'x-service-key': t.issueKey('public') }
    const queryKey = { 'x-service-key': t.issueKey('confidential', null, ['query']) }
    const none = { 'x-service-key': 'rk_sec_v1_none' }
    expect(await failure(call('notes.mine', { bad: 1 }))).toBe('401 FUNCTIONAL_TOKEN_REQUIRED')
    expect(await failure(call('notes.add', { bad: 1 }, { headers: publicKey }))).toBe(
      '403 AUTH_POLICY_DENIED',
    )
    expect(await failure(call('notes.add', { bad: 1 }, { headers: queryKey }))).toBe(
      '403 AUTH_POLICY_DENIED',
    )
    expect(await failure(call('notes.add', { bad: 1 }, { headers: none }))).toBe(
      '401 APPLICATION_KEY_INVALID',
    )
  })
})

test('a page of an allowed origin may send the headers of plain calls', async () => {
  const { response } = await send('/v1/functions/notes.big', {
    method: 'OPTIONS',
    headers: { origin: ORIGIN },
  })
  expect(response.status).toBe(204)
  expect(response.headers.get('access-control-allow-methods')).toBe('POST, GET, OPTIONS')
  const allowed = response.headers.get('access-control-allow-headers')!
  for (const name of ['X-Service-Target', 'X-Service-Integers', 'Idempotency-Key']) {
    expect(allowed.split(', ')).toContain(name)
  }
  const headers = { origin: 'https://evil.test' }
  expect(await failure(call('notes.big', { value: 1 }, { headers }))).toBe('403 ORIGIN_DENIED')
})

describe('the document of Functions', () => {
  const document = async (sent: Sent = {}) =>
    get('openapi.json', '?target=channel:production', sent)

  test('it has exactly the Functions that the key may call', async () => {
    const namesFor = async (key: string) => {
      const { json } = await document({ headers: { 'x-service-key': key } })
      return Object.keys(json.paths).map((path) => path.replace('/v1/functions/', ''))
    }
    expect(await namesFor(t.key)).toEqual(
      'admin/users.$list notes.add notes.big notes.echo notes.get notes.log notes.mine'
        .split(' ')
        .concat('notes.send', 'openapi.json'),
    )
    expect(await namesFor(t.issueKey('public'))).toEqual(['notes.shared'])
    expect(await namesFor(t.issueKey('confidential', null, ['action']))).toEqual(['notes.send'])
    const developer = { 'x-service-key': t.issueKey('development') }
    expect(await failure(document({ headers: developer }))).toBe('403 AUTH_POLICY_DENIED')
  })

  test('its entity tag is the digest, and a client that has it gets no body', async () => {
    const { response, text } = await document()
    const etag = response.headers.get('etag')!
    expect(etag).toBe(`W/"${createHash('sha256').update(text).digest('hex')}"`)
    expect(response.headers.get('cache-control')).toBe('private, no-cache')
    const again = await document({ headers: { 'if-none-match': etag.replace('W/', '') } })
    expect([again.response.status, again.text]).toEqual([304, ''])
    const other = await document({ headers: { 'if-none-match': '"x"' } })
    expect(other.response.status).toBe(200)
  })

  test.each([
    ['?target=channel:none', '404 TARGET_NOT_FOUND'],
    ['?target=production', '400 REQUEST_INVALID'],
    ['?other=x', '400 REQUEST_INVALID'],
    ['', '404 TARGET_NOT_FOUND'],
  ])('%s is answered with %s', async (query, expected) => {
    expect(await failure(get('openapi.json', query))).toBe(expected)
  })
})
