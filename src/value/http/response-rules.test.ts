/** Responses that Functions decide: each allow-list, and values that attack their readers. */
import { describe, expect, test } from 'vitest'
import { arbitraryValue } from '../../../testing/arbitrary-values.ts'
import { fc, inputs } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator } from '../validators.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../values.ts'
import {
  type Caching,
  isHttpResponse,
  RESPONSE_HEADER_CHARACTERS_MAX,
  RESPONSE_HEADERS,
  RESPONSE_HEADERS_MAX,
  readHttpResponse,
} from './response-rules.ts'
import { HTTP_RESPONSE } from './responses.ts'

interface Written {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly contentType?: string
  readonly body?: string | Uint8Array
  readonly json?: Value
}

const check = compileValidator(HTTP_RESPONSE, { coerce: false })

/** Returns the value of a response as a Function writes it. */
function valueFrom({ headers, ...more }: Written): ValueObject {
  const value = new Map<string, Value>(Object.entries(more))
  if (headers !== undefined) value.set('headers', new Map(Object.entries(headers)))
  return check(value, '') as ValueObject
}

const read = (response: Written, caching: Caching = 'public') =>
  readHttpResponse(valueFrom(response), caching)

/** Returns the path of the part that breaks a rule; null for a response within the rules. */
function brokenPath(written: Written, caching: Caching = 'public'): string | null {
  try {
    read(written, caching)
    return null
  } catch (error) {
    if (error instanceof ValidationError) return error.path
    throw error
  }
}

test('a response of nothing is 200 without a body', () => {
  expect(read({})).toEqual({ status: 200, headers: new Map(), body: null })
})

test('only the exact validator makes a response', () => {
  expect(isHttpResponse(HTTP_RESPONSE)).toBe(true)
  expect(isHttpResponse({ type: 'object', fields: {} })).toBe(false)
  expect(isHttpResponse({ type: 'any' })).toBe(false)
  const fields = HTTP_RESPONSE.type === 'object' ? HTTP_RESPONSE.fields : {}
  expect(isHttpResponse({ type: 'object', fields: { ...fields, more: { type: 'null' } } })).toBe(
    false,
  )
  expect(isHttpResponse({ type: 'nullable', inner: HTTP_RESPONSE })).toBe(false)
})

describe('statuses', () => {
  const allowed = [200, 201, 202, 203, 204, 400, 401, 403, 404, 409, 410, 422, 429, 451, 500, 503]

  test.each(allowed)('%d is answered', (status) => expect(read({ status }).status).toBe(status))

  test('no other integer is a status, nor is a number between two', () => {
    const redirects = [301, 302, 303, 307, 308]
    const open = Array.from({ length: 1_000 }, (_, status) => status).filter((status) => {
      const headers = redirects.includes(status) ? { location: '/' } : {}
      return brokenPath({ status, headers }) === null
    })
    for (const status of [
      0, 100, 101, 103, 199, 205, 206, 304, 305, 306, 407, 408, 421, 426, 999,
    ]) {
      expect(open).not.toContain(status)
    }
    expect(open).toHaveLength(38)
    for (const status of [200.5, -200, 1e21, 4_294_967_496]) {
      expect(brokenPath({ status })).toBe('.status')
    }
  })

  test('a redirect has a location, and only a redirect or a creation has one', () => {
    expect(brokenPath({ status: 302 })).toBe('.headers.location')
    expect(read({ status: 303, headers: { Location: '/next' } }).headers.get('location')).toBe(
      '/next',
    )
    expect(brokenPath({ status: 201, headers: { location: '/orders/1' } })).toBeNull()
    expect(brokenPath({ status: 200, headers: { location: '/' } })).toBe('.headers.location')
  })

  test.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'vbscript:x',
    'blob:https://a/1',
    'http://[',
  ])('a redirect leads to no other scheme than those of the web: %s', (location) => {
    expect(brokenPath({ status: 302, headers: { location } })).toBe('.headers.location')
  })

  test('204 has no body', () => {
    expect(brokenPath({ status: 204, body: '' })).toBe('.body')
    expect(brokenPath({ status: 204, json: null })).toBe('.body')
    expect(brokenPath({ status: 204 })).toBeNull()
  })
})

describe('headers', () => {
  test('each header of the list is answered, in lower case', () => {
    for (const name of RESPONSE_HEADERS) {
      const status = name === 'location' ? 201 : 200
      const value = name === 'cache-control' ? 'no-store' : '/a'
      const { headers } = read({ status, headers: { [name.toUpperCase()]: value } })
      expect([...headers]).toEqual([[name, value]])
    }
    expect(read({ headers: { 'X-App-Trace': 'a' } }).headers.get('x-app-trace')).toBe('a')
  })

  test.each([
    'set-cookie',
    'Set-Cookie2',
    'access-control-allow-origin',
    'access-control-allow-credentials',
    'content-security-policy',
    'content-security-policy-report-only',
    'cross-origin-opener-policy',
    'x-frame-options',
    'x-content-type-options',
    'referrer-policy',
    'strict-transport-security',
    'clear-site-data',
    'service-worker-allowed',
    'sourcemap',
    'refresh',
    'www-authenticate',
    'proxy-authenticate',
    'authorization',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'content-length',
    'content-encoding',
    'content-range',
    'content-location',
    'content-type',
    'vary',
    'age',
    'date',
    'expires',
    'server',
    'via',
    'alt-svc',
    'nel',
    'report-to',
    'x-accel-redirect',
    'x-accel-buffering',
    'x-sendfile',
    'x-service-request-id',
    'x-service-release-id',
    'x-forwarded-for',
    'x-http-method-override',
    ':status',
    'x-app-',
    'x-app-é',
    'x-app-a b',
    'x-app-a\r\nset-cookie: a=b',
    'x-app-a:',
    'location ',
    ' location',
    '__proto__x',
    '',
  ])('a header outside of the list fails: %j', (name) => {
    expect(brokenPath({ headers: { [name]: 'x' } })).toMatch(/^\.headers\./)
  })

  test('a header that is named twice, in any case, fails', () => {
    expect(brokenPath({ headers: { etag: '"a"', ETag: '"b"' } })).toBe('.headers.etag')
  })

  test.each([
    '',
    ' ',
    ' a',
    'a ',
    'a\r\nset-cookie: a=b',
    'a\nb',
    'a\rb',
    'a\0b',
    'a\tb',
    'a\u007f',
    'é',
    '\u{1f600}',
    'a\u2028b',
    'x'.repeat(RESPONSE_HEADER_CHARACTERS_MAX + 1),
  ])('a value that is not visible ASCII fails: %j', (value) => {
    expect(brokenPath({ headers: { etag: value } })).toBe('.headers.etag')
  })

  test('headers have a bound', () => {
    const some = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-app-${i}`, 'x']))
    expect(brokenPath({ headers: some(RESPONSE_HEADERS_MAX) })).toBeNull()
    expect(brokenPath({ headers: some(RESPONSE_HEADERS_MAX + 1) })).toBe('.headers')
  })

  test('a message about a header repeats no text that may be a secret', () => {
    const broken = (headers: Record<string, string>): string => {
      try {
        read({ headers })
        return ''
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(broken({ 'Secret Token 1234': 'x' })).not.toMatch(/secret/i)
    expect(broken({ etag: 'hunter\n2' })).not.toContain('hunter')
  })
})

describe('copies of caches', () => {
  const control = (value: string, caching: Caching) =>
    brokenPath({ headers: { 'cache-control': value } }, caching)

  test.each(['public, max-age=60', 'max-age=31536000, immutable', 'No-Cache', 's-maxage=5'])(
    'a response without an identity may be kept: %s',
    (value) => expect(control(value, 'public')).toBeNull(),
  )

  test('a response to an identity is never shared', () => {
    expect(control('private, max-age=60', 'private')).toBeNull()
    expect(control('public', 'private')).toBe('.headers.cache-control')
    expect(control('max-age=60, S-MaxAge=60', 'private')).toBe('.headers.cache-control')
  })

  test('a response without copies says nothing else', () => {
    expect(control('no-store', 'none')).toBeNull()
    expect(control('private', 'none')).toBe('.headers.cache-control')
  })

  test.each([
    'max-age',
    'max-age=-1',
    'max-age=1.5',
    'max-age=31536001',
    'max-age=1=1',
    'public=1',
    'private="set-cookie"',
    'unknown',
    ',',
    'public,',
  ])('a directive of another form fails: %s', (value) => {
    expect(control(value, 'public')).toBe('.headers.cache-control')
  })
})

describe('content', () => {
  const typeOf = (written: Written) => read(written).headers.get('content-type')

  test('the type follows the body', () => {
    const bytes = new Uint8Array([1])
    expect(typeOf({ body: 'x' })).toBe('text/plain; charset=utf-8')
    expect(typeOf({ body: bytes })).toBe('application/octet-stream')
    expect(typeOf({ json: null })).toBe('application/json')
    expect(read({ body: bytes }).body).toBe(bytes)
    expect(typeOf({ body: 'x', contentType: 'Text/CSV' })).toBe('text/csv; charset=utf-8')
    expect(typeOf({ body: '{}', contentType: 'application/problem+json' })).toBe(
      'application/problem+json',
    )
    expect(typeOf({ body: bytes, contentType: 'image/png' })).toBe('image/png')
    expect(typeOf({ json: 1, contentType: 'application/json;charset=UTF-8' })).toBe(
      'application/json; charset=utf-8',
    )
  })

  test.each([
    'text/html',
    'TEXT/HTML; charset=utf-8',
    'application/xhtml+xml',
    'image/svg+xml',
    'text/javascript',
    'application/javascript',
    'application/ecmascript',
    'application/wasm',
    'text/css',
    'text/xsl',
    'application/xslt+xml',
    'application/mathml+xml',
    'application/x-shockwave-flash',
    'application/java-archive',
    'application/manifest',
    'message/http',
    'message/rfc822',
    'multipart/x-mixed-replace; boundary=a',
    'multipart/related',
    'text/cache-manifest',
    'text/event-stream',
    'text/*',
    '*/*',
    'text',
    '',
    'text/plain, text/html',
    'text/plain; charset=utf-7',
    'text/plain; charset=utf-16',
    'text/plain; charset=utf-8; a=b',
    'text/plain; boundary=a',
    'text/plain;',
    'text/plain\r\nset-cookie: a=b',
    'text/plain\0',
    'text/plain charset=utf-8',
    'application/+json',
    'application/html,json+json',
  ])('a content type outside of the list fails: %j', (contentType) => {
    expect(brokenPath({ body: 'x', contentType })).toBe('.contentType')
  })

  test('XML is a download', () => {
    const xml = (headers: Record<string, string>) =>
      read({ body: '<Response/>', contentType: 'text/xml', headers }).headers
    expect(xml({}).get('content-disposition')).toBe('attachment')
    const named = 'attachment; filename="a.xml"'
    expect(xml({ 'content-disposition': named }).get('content-disposition')).toBe(named)
    const path = '.headers.content-disposition'
    for (const disposition of ['inline', 'attachments', 'x; attachment']) {
      const headers = { 'content-disposition': disposition }
      const written = { body: 'x', contentType: 'application/xml; charset=utf-8', headers }
      expect(brokenPath(written)).toBe(path)
    }
  })

  test('a response has one body, and a content type only beside it', () => {
    expect(brokenPath({ body: 'x', json: 1 })).toBe('.json')
    expect(brokenPath({ contentType: 'text/plain' })).toBe('.contentType')
    expect(brokenPath({ json: 1, contentType: 'text/plain' })).toBe('.contentType')
  })

  test('JSON has the numbers of other services, and texts for what JSON has not', () => {
    const json: Value = new Map<string, Value>([
      ['number', 1.5],
      ['large', 1e20],
      ['integer', 7n],
      ['long', 2n ** 60n],
      ['bytes', new Uint8Array([251, 255])],
      ['time', new Timestamp(0n)],
      ['id', new TypedId('notes_01ARZ3NDEKTSV4RRFFQ69G5FAV')],
      ['list', [true, null, 'é"\u2028']],
      ['__proto__', new Map()],
    ])
    const { body } = read({ json })
    expect(body).toBe(
      '{"number":1.5,"large":100000000000000000000,"integer":7,"long":"1152921504606846976",' +
        '"bytes":"-_8","time":"1970-01-01T00:00:00Z","id":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV",' +
        '"list":[true,null,"é\\"\u2028"],"__proto__":{}}',
    )
  })
})

describe(`hostile responses (SVC_SEED=${SEED})`, () => {
  const hostile = fc.string({ unit: 'binary', maxLength: 20 })
  const name = fc.constantFrom('ETag', 'x-app-a', 'Set-Cookie', 'location', 'vary', 'retry-after')
  const value = fc.constantFrom('a', '/a', 'a b', 'no-store', 'a\r\nb: c', 'é')
  const type = fc.constantFrom('text/plain', 'text/html', 'application/json', 'text/xml')
  const mostly = <T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: other })
  const response = fc.record(
    {
      status: mostly(fc.constantFrom(200, 201, 302, 404), fc.double({ noNaN: true })),
      headers: fc.dictionary(mostly(name, hostile), mostly(value, hostile), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
      contentType: mostly(type, hostile),
      body: fc.oneof(hostile, fc.uint8Array({ maxLength: 9 })),
      json: arbitraryValue,
    },
    { requiredKeys: [] },
  )

  test('every response within the rules is one that the platform sends as it is', {
    tags: ['slow'],
  }, () => {
    let answered = 0
    const property = fc.property(response, (written) => {
      let answer: ReturnType<typeof read>
      try {
        answer = read(written as Written)
      } catch (error) {
        if (error instanceof ValidationError) return
        throw error
      }
      answered += 1
      const { status, headers, body } = answer
      const sent = new Response(body, { status, headers: [...headers] })
      expect(sent.status).toBe(status)
      for (const [name, value] of headers) expect(sent.headers.get(name)).toBe(value)
      for (const name of headers.keys()) {
        expect(name).toMatch(
          /^(?:content-type|x-app-[a-z0-9-]+)$|^(?!set-cookie|access-|x-service)/,
        )
        expect(name).toMatch(/^[a-z0-9-]+$/)
      }
      expect(headers.get('content-type') ?? '').not.toMatch(/html|script|svg/)
      if (written.json !== undefined) JSON.parse(body as string)
    })
    fc.assert(property, { numRuns: inputs(20_000) })
    // One in nineteen is within the rules.
    expect(answered).toBeGreaterThan(inputs(500))
  })
})
