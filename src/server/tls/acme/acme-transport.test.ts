/** The bounds of the requests of an order, by an authority that breaks each of them. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { selfSigned } from '../../../../testing/certificates.ts'
import { TestSystem } from '../../../system/system.ts'
import { AcmeFailure } from './acme-failure.ts'
import {
  AcmeTransport,
  REQUESTS_MAX,
  RESPONSE_BYTES_MAX,
  retryAfterMillis,
} from './acme-transport.ts'

const TLS = selfSigned('localhost')
const system = new TestSystem({ millis: 0 })
let authority: Server
let origin: string
let requests: string[]

const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '/dir': (response) => response.end('{}'),
  '/redirect': (response) => response.writeHead(302, { location: '/dir' }).end(),
  '/large': (response) => response.end('a'.repeat(RESPONSE_BYTES_MAX + 1)),
  '/endless': (response) => {
    response.on('error', () => undefined)
    const more = () => {
      while (!response.destroyed && response.write('a'.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  },
  '/nonce': (response) =>
    response.writeHead(400).end('{"type":"urn:ietf:params:acme:error:badNonce"}'),
  '/limited': (response) =>
    response
      .writeHead(429, { 'retry-after': '120' })
      .end('{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too\\nmany"}'),
  '/cut': (response) => response.socket?.destroy(),
  '/silent': () => undefined,
}

beforeAll(async () => {
  authority = createServer(
    { cert: TLS.certificate, key: TLS.key },
    (request: IncomingMessage, response) => {
      requests.push(request.url!)
      ANSWERS[request.url!]!(response)
    },
  )
  authority.listen(0, '127.0.0.1')
  await once(authority, 'listening')
  origin = `https://localhost:${(authority.address() as AddressInfo).port}`
})

afterAll(() => {
  authority.closeAllConnections()
  authority.close()
})

function transport(signal = new AbortController().signal, trusted = TLS.certificate) {
  requests = []
  return new AcmeTransport({ directoryUrl: `${origin}/dir`, authority: trusted, system, signal })
}

const get = (path: string, from = transport()) =>
  from.request({ url: `${origin}${path}`, method: 'GET', body: null })

test('a response has its status and its body', async () => {
  expect(await get('/dir')).toMatchObject({ status: 200, body: '{}' })
  expect(await get('/nonce')).toMatchObject({ status: 400 })
})

test.each([
  'https://other.example/dir',
  'https://localhost:1/dir',
  'http://localhost/dir',
  'no URL',
])('an address of another origin is not asked: %s', async (url) => {
  const sent = transport().request({ url, method: 'GET', body: null })
  await expect(sent).rejects.toThrow('another origin')
  expect(requests).toEqual([])
})

test.each(['/large', '/endless'])('a body beyond the limit is a failure: %s', async (path) => {
  await expect(get(path)).rejects.toThrow('the response is too large')
})

test('a redirect is not followed', async () => {
  await expect(get('/redirect')).rejects.toThrow('the authority answered 302')
  expect(requests).toEqual(['/redirect'])
})

test('a rejection has its reason on one line, and the time that the authority names', async () => {
  const failure = await get('/limited').catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(AcmeFailure)
  expect(failure).toMatchObject({ retryAfterMillis: 120_000 })
  expect((failure as AcmeFailure).message).toContain('rateLimited: too many')
})

test('a cut connection, and a certificate of another authority, are failures', async () => {
  await expect(get('/cut')).rejects.toThrow(AcmeFailure)
  const other = selfSigned('localhost').certificate
  await expect(get('/dir', transport(undefined, other))).rejects.toThrow(AcmeFailure)
  expect(requests).toEqual([])
})

test('the end of the order ends a request without a response', async () => {
  const ending = new AbortController()
  const sent = get('/silent', transport(ending.signal))
  const failed = expect(sent).rejects.toThrow('no response in time')
  await expect.poll(() => requests, { timeout: 120_000 }).toEqual(['/silent'])
  ending.abort()
  await failed
})

test('an order has a limited number of requests', async () => {
  const ended = AbortSignal.abort()
  const bounded = transport(ended)
  for (let i = 0; i < REQUESTS_MAX; i++) await get('/dir', bounded).catch(() => undefined)
  await expect(get('/dir', bounded)).rejects.toThrow('too many requests')
})

test.each([
  ['120', 120_000],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
  ['999999999', 7 * 86_400_000],
  ['Thu, 01 Jan 1960 00:00:00 GMT', 0],
  ['soon', null],
  [undefined, null],
])('a pause of %s is read within its bounds', (value, millis) => {
  expect(retryAfterMillis(value, 0)).toBe(millis)
})
