/** What every answer of the application origin carries, whatever was asked. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../build/testing/gateways.ts'
import { functionManifest } from '../../../build/testing/products.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway({
    functions: [functionManifest('a.one', { clients: ['confidential'], returns: { type: 'any' } })],
    tables: [],
    handlers: { 'a.one': () => 1 },
  })
})
afterAll(() => gateway.close())

const request = async (path: string, init: RequestInit = {}): Promise<Response> =>
  gateway.application.fetch(new Request(`http://app.test${path}`, init))

const query = (contentType: string, given: Readonly<Record<string, string>> = {}) =>
  request('/v1/query', {
    method: 'POST',
    headers: { 'content-type': contentType, 'x-service-key': gateway.key, ...given },
    body: JSON.stringify({
      ...{ version: 1, target: 'channel:production', function: 'a.one' },
      arguments: { type: 'object', value: [] },
    }),
  })

const preflight = (origin: string) =>
  request('/v1/query', { method: 'OPTIONS', headers: { origin } })

test.each<[string, () => Promise<Response>, number]>([
  ['a call', () => query('application/json'), 200],
  ['a call that quotes', () => query('application/json; charset="utf-8"'), 200],
  ['a call that is refused', () => query('text/plain'), 415],
  ['a packed call', () => query('application/json', { 'content-encoding': 'gzip' }), 415],
  ['a probe of the process', () => request('/healthz'), 200],
  ['a probe of admission', () => request('/readyz'), 200],
  ['a preflight', () => preflight(ORIGIN), 204],
  ['a preflight of another origin', () => preflight('https://other.test'), 403],
  ['another method', () => request('/v1/query'), 405],
  ['an unknown route', () => request('/v2'), 404],
])('%s is answered with a request ID, and no content to sniff', async (_, send, status) => {
  const { status: answered, headers } = await send()
  expect(answered).toBe(status)
  expect(headers.get('x-service-request-id')).toMatch(/^req_[0-9A-Z]{26}$/)
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test.each<[string, RequestInit, number]>([
  ['/v2', { method: 'POST' }, 404],
  ['/v2', { method: 'OPTIONS' }, 204],
  ['/v1/query', {}, 405],
  ['/v1/query?x', { method: 'POST' }, 400],
  ['/healthz', {}, 200],
])('%s %o is read by a listed origin, and by no other', async (path, init, status) => {
  const send = (origin: string) => request(path, { ...init, headers: { origin } })
  const listed = await send(ORIGIN)
  expect(listed.status).toBe(status)
  expect(listed.headers.get('access-control-allow-origin')).toBe(ORIGIN)
  expect(listed.headers.get('vary')).toBe('Origin')
  const { headers } = await send('https://other.test')
  expect(headers.get('access-control-allow-origin')).toBeNull()
})
