/** Signatures against the examples that AWS publishes, and what malformed ones are. */
import { describe, expect, test } from 'vitest'
import { fc } from '../../../../../testing/properties.ts'
import { checksumStream } from '../../../../system/checksums.ts'
import { sha256Hex } from '../../../../system/digests.ts'
import { Secret } from '../../../../value/secret.ts'
import { decodeChunks } from '../bodies/chunked-bodies.ts'
import { S3Fault } from '../errors.ts'
import { type Authorization, parseAuthorization } from './authorizations.ts'
import { ChunkSignatures, isSignedBy, signingKey } from './signatures.ts'

/** "Signature Calculations for the Authorization Header", Amazon S3 API reference. */
const SECRET = new Secret('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')
const SCOPE = '20130524/us-east-1/s3/aws4_request'
const EMPTY = sha256Hex('')

const authorizationOf = (names: string, signature: string): Authorization => {
  const header =
    `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/${SCOPE},` +
    `SignedHeaders=${names},Signature=${signature}`
  const headers = new Headers({ authorization: header, 'x-amz-date': '20130524T000000Z' })
  return parseAuthorization(headers, { path: '/', bucket: null, key: null, query: new Map() })
}

type Example = [
  name: string,
  method: string,
  target: string,
  headers: Record<string, string>,
  payload: string,
  signature: string,
]

const HOST = 'examplebucket.s3.amazonaws.com'
const DATE = { host: HOST, 'x-amz-date': '20130524T000000Z' }
const EXAMPLES: Example[] = [
  [
    'GET Object with a range',
    'GET',
    '/test.txt',
    { ...DATE, range: 'bytes=0-9', 'x-amz-content-sha256': EMPTY },
    EMPTY,
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'PUT Object',
    'PUT',
    '/test$file.text',
    {
      ...DATE,
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-content-sha256': sha256Hex('Welcome to Amazon S3.'),
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    },
    sha256Hex('Welcome to Amazon S3.'),
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'GET Bucket Lifecycle',
    'GET',
    '/?lifecycle',
    { ...DATE, 'x-amz-content-sha256': EMPTY },
    EMPTY,
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'GET Bucket (List Objects)',
    'GET',
    '/?max-keys=2&prefix=J',
    { ...DATE, 'x-amz-content-sha256': EMPTY },
    EMPTY,
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
]

describe('the published examples of signatures in the header', () => {
  const check = (example: Example, change: Partial<Record<string, string>> = {}) => {
    const [, method, target, sent, payload, signature] = example
    const url = new URL(`http://x${target}`)
    const headers = new Headers({ ...sent, ...(change as Record<string, string>) })
    const authorization = authorizationOf(Object.keys(sent).sort().join(';'), signature)
    // The examples sign a separate host, which a proxy maps to `/v1/s3`.
    const path = `/v1/s3${url.pathname}`
    const query = new Map(url.searchParams)
    const request = { method, url: { path, query }, headers, payload }
    return isSignedBy(signingKey(SECRET, authorization), authorization, request)
  }

  test.each(EXAMPLES)('the published signature in the header is valid: %s', (...example) => {
    expect(check(example)).toBe(true)
    expect(check(example, { host: 'other.example' })).toBe(false)
    expect(check(example, { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' })).toBe(false)
  })
})

test('the published example of a signed URL is valid', () => {
  const signature = 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404'
  const query = new Map([
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
    ['X-Amz-Credential', `AKIAIOSFODNN7EXAMPLE/${SCOPE}`],
    ['X-Amz-Date', '20130524T000000Z'],
    ['X-Amz-Expires', '86400'],
    ['X-Amz-SignedHeaders', 'host'],
    ['X-Amz-Signature', signature],
  ])
  const headers = new Headers({ host: HOST })
  const url = { path: '/v1/s3/test.txt', bucket: null, key: null, query }
  const authorization = parseAuthorization(headers, url)
  const request = { method: 'GET', url, headers, payload: 'UNSIGNED-PAYLOAD' }
  const key = signingKey(SECRET, authorization)
  expect(isSignedBy(key, authorization, request)).toBe(true)
  expect(isSignedBy(key, authorization, { ...request, method: 'PUT' })).toBe(false)
})

/** "Transferring Payload in Multiple Chunks (Chunked Upload)", Amazon S3 API reference. */
describe('the published example of signed chunks', () => {
  const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'
  const CHUNKS = [
    ['10000', 'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648', 65_536],
    ['400', '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497', 1_024],
    ['0', 'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9', 0],
  ] as const
  const body = Buffer.concat(
    CHUNKS.map(([size, signature, length]) =>
      Buffer.from(`${size};chunk-signature=${signature}\r\n${'a'.repeat(length)}\r\n`),
    ),
  )
  const decode = async (bytes: Uint8Array, cut: number): Promise<number> => {
    const authorization = authorizationOf('host', seed)
    const signatures = new ChunkSignatures(signingKey(SECRET, authorization), authorization)
    async function* source() {
      for (let at = 0; at < bytes.length; at += cut) yield bytes.slice(at, at + cut)
    }
    let length = 0
    const options = { signatures, hasTrailers: false, onTrailer: () => undefined }
    for await (const chunk of decodeChunks(source(), options)) length += chunk.length
    return length
  }

  test.each([1_000_000, 65_536, 1_000, 87, 7])(
    'the published example of signed chunks is valid in pieces of %d bytes',
    async (cut) => {
      expect(await decode(body, cut)).toBe(66_560)
    },
  )

  test('a changed byte is detected at any position', async () => {
    for (const at of [0, 20, 100, 60_000, 65_700, body.length - 10, body.length - 1]) {
      const changed = Uint8Array.from(body)
      changed[at]! ^= 1
      await expect(decode(changed, 10_000), String(at)).rejects.toThrow(S3Fault)
    }
  })

  test('a body that ends early or has more bytes is rejected', async () => {
    for (const length of [0, 1, 90, 65_536, 65_700, body.length - 3]) {
      await expect(decode(body.subarray(0, length), 10_000), `${length}`).rejects.toThrow(S3Fault)
    }
    await expect(decode(Buffer.concat([body, Buffer.from('x')]), 1_000)).rejects.toThrow(S3Fault)
  })
})

test('the published example of signed chunks with a trailer is valid', async () => {
  const seed = '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e'
  const chunks = [
    ['10000', 'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2', 65_536],
    ['400', '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7', 1_024],
  ] as const
  const last = '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992'
  const trailer = 'x-amz-checksum-crc32c:sOO8/Q=='
  const signed = 'd81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435'
  const decode = async (end: string) => {
    const head = chunks.map(([size, signature, length]) => {
      return `${size};chunk-signature=${signature}\r\n${'a'.repeat(length)}\r\n`
    })
    const authorization = authorizationOf('host', seed)
    const signatures = new ChunkSignatures(signingKey(SECRET, authorization), authorization)
    const checksum = checksumStream('crc32c')
    const trailers: string[] = []
    const onTrailer = (name: string, value: string) => trailers.push(`${name}:${value}`)
    async function* source() {
      yield Buffer.from(`${head.join('')}0;chunk-signature=${last}\r\n${end}`)
    }
    const options = { signatures, hasTrailers: true, onTrailer }
    for await (const chunk of decodeChunks(source(), options)) checksum.update(chunk)
    return [...trailers, checksum.digest().toBase64()]
  }
  const whole = `${trailer}\r\nx-amz-trailer-signature:${signed}\r\n\r\n`
  expect(await decode(whole)).toEqual([trailer, 'sOO8/Q=='])
  for (const end of [
    `${trailer}\r\n\r\n`,
    whole.replace('sOO8', 'tOO8'),
    whole.replace('d81f', 'e81f'),
    `x-amz-trailer-signature:${signed}\r\n\r\n`,
  ]) {
    await expect(decode(end), end).rejects.toThrow(S3Fault)
  }
})

test.each([
  ['no field', 'AWS4-HMAC-SHA256 '],
  ['another algorithm', 'AWS4-HMAC-SHA1 Credential=a'],
  ['version 2', 'AWS AKIA:signature'],
  ['a bearer', 'Bearer x'],
])('the header with %s is malformed', (_, authorization) => {
  const headers = new Headers({ authorization, 'x-amz-date': '20130524T000000Z' })
  const url = { path: '/', bucket: null, key: null, query: new Map() }
  expect(() => parseAuthorization(headers, url)).toThrow(S3Fault)
})

const GOOD = {
  Credential: `AKID/${SCOPE}`,
  SignedHeaders: 'host;x-amz-date',
  Signature: 'a'.repeat(64),
}
const parsed = (fields: Record<string, string>, date = '20130524T000000Z') => {
  const text = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  const authorization = `AWS4-HMAC-SHA256 ${text.join(', ')}`
  const url = { path: '/', bucket: null, key: null, query: new Map() }
  return parseAuthorization(new Headers({ authorization, 'x-amz-date': date }), url)
}

test('any region is accepted', () => {
  expect(parsed(GOOD).region).toBe('us-east-1')
  const elsewhere = 'AKID/20130524/mars-1/s3/aws4_request'
  expect(parsed({ ...GOOD, Credential: elsewhere }).region).toBe('mars-1')
})

test.each([
  ['another service', { Credential: 'AKID/20130524/us-east-1/ec2/aws4_request' }],
  ['another terminator', { Credential: 'AKID/20130524/us-east-1/s3/aws5_request' }],
  ['another day', { Credential: 'AKID/20130525/us-east-1/s3/aws4_request' }],
  ['no key', { Credential: `/${SCOPE}` }],
  ['headers without host', { SignedHeaders: 'x-amz-date' }],
  ['headers in upper case', { SignedHeaders: 'Host' }],
  ['headers out of order', { SignedHeaders: 'x-amz-date;host' }],
  ['repeated headers', { SignedHeaders: 'host;host' }],
  ['a short signature', { Signature: 'a'.repeat(63) }],
  ['a signature in upper case', { Signature: 'A'.repeat(64) }],
  ['a fourth field', { Other: 'x' }],
])('an authorization with %s is malformed', (_, change) => {
  expect(() => parsed({ ...GOOD, ...change })).toThrow(S3Fault)
})

test.each(['', '20130524', '20130524T250000Z', '20131324T000000Z', '20130231T000000Z'])(
  'the time %j is malformed',
  (date) => {
    expect(() => parsed(GOOD, date)).toThrow(S3Fault)
  },
)

test('the parser of authorizations throws only failures of S3', () => {
  const piece = fc.constantFrom('AWS4-HMAC-SHA256 ', 'Credential=', 'SignedHeaders=', ',', '=', '/')
  const text = fc.array(fc.oneof(piece, fc.string({ maxLength: 20 })), { maxLength: 20 })
  fc.assert(
    fc.property(text, fc.dictionary(fc.string(), fc.string()), (parts, query) => {
      const header = parts.join('').replace(/[^\x20-\x7e]/g, '')
      const headers = new Headers({ authorization: header, 'x-amz-date': '20130524T000000Z' })
      const given = new Map(Object.entries(query))
      for (const each of [headers, new Headers()]) {
        given.set('X-Amz-Signature', 'x')
        try {
          parseAuthorization(each, { path: '/', bucket: null, key: null, query: given })
        } catch (error) {
          expect(error).toBeInstanceOf(S3Fault)
        }
      }
    }),
  )
})
