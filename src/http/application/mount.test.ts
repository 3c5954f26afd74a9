/** Headers that every response of the application origin carries. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ORIGIN, openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'

let gateway: TestGateway
let directory: string
let frozen = false

/** Opens a store that answers nothing while `frozen` is set, like a stopped database. */
async function freezable(path: string): Promise<DocumentStore> {
  return new Proxy(await openSqliteDocuments(path), {
    get(target, name) {
      if (name === 'read' && frozen) return () => new Promise(() => undefined)
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-mount-'))
  gateway = await openTestGateway({
    store: await freezable(join(directory, 'documents.db')),
    functions: [functionManifest('a.one', { clients: ['confidential'], returns: { type: 'any' } })],
    tables: [],
    handlers: { 'a.one': () => 1 },
  })
})
afterAll(async () => {
  await gateway.close()
  rmSync(directory, { recursive: true })
})

const request = async (path: string, init: RequestInit = {}): Promise<Response> =>
  gateway.application.fetch(new Request(`http://app.test${path}`, init))

const query = (contentType: string, given: Readonly<Record<string, string>> = {}) =>
  request('/v1/query', {
    method: 'POST',
    headers: { 'content-type': contentType, 'x-service-key': gateway.key, ...given },
    body: JSON.stringify({
      version: 1,
      target: 'channel:production',
      function: 'a.one',
      arguments: { type: 'object', value: [] },
    }),
  })

const preflight = (origin: string) =>
  request('/v1/query', { method: 'OPTIONS', headers: { origin } })

test.each<[string, () => Promise<Response>, number]>([
  ['a call', () => query('application/json'), 200],
  ['a call that quotes', () => query('application/json; charset="utf-8"'), 200],
  ['a call that is rejected', () => query('text/plain'), 415],
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

test('a server whose document store does not answer is live, but not ready', {
  tags: ['slow'],
}, async () => {
  frozen = true
  const [ready, live] = await Promise.all([request('/readyz'), request('/healthz')])
  expect([ready.status, live.status]).toEqual([503, 200])
})
