import zlib from 'node:zlib'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type TestIdentity, testIdentity } from '../../../testing/identity.ts'
import { mountedRoutes } from '../../../testing/management/mounted-routes.ts'
import { firstOwner } from '../../../testing/operators.ts'
import { type OpenListener, openListener } from '../../server/listeners.ts'
import { realSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import { publishedDocument } from '../openapi/published.ts'

let t: TestIdentity
let listener: OpenListener

beforeAll(async () => {
  t = await testIdentity()
  const { fetch } = mountedRoutes(t, JSON.stringify(publishedDocument()))
  listener = openListener({
    surface: 'management',
    listen: { host: '127.0.0.1', port: 0, loopback: true },
    app: { fetch },
    codes: MANAGEMENT_CODES,
    system: realSystem(),
    log: memoryLog().log,
    tlsTerminated: true,
  })
})
afterAll(async () => {
  listener.cut()
  await t.dispose()
})

/** Sends a request and leaves the body of the response as it was sent. */
function send(path: string, acceptEncoding: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'accept-encoding': acceptEncoding, ...init.headers }
  const request: BunFetchRequestInit = { ...init, headers, decompress: false }
  return fetch(`http://${listener.address}${path}`, request)
}

const PATH = '/v1/openapi.json'

test.each([
  ['gzip', (bytes: Uint8Array) => zlib.gunzipSync(bytes).toString()],
  ['zstd', (bytes: Uint8Array) => zlib.zstdDecompressSync(bytes).toString()],
])('the OpenAPI document is compressed with %s once for all requests', async (coding, decoded) => {
  const plain = await send(PATH, 'identity')
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect(plain.headers.get('vary')).toBe('Accept-Encoding')
  const text = await plain.text()
  const deflated = vi.spyOn(zlib, 'deflateRaw')
  onTestFinished(() => deflated.mockRestore())
  for (let i = 0; i < 3; i++) {
    const response = await send(PATH, coding)
    expect(response.headers.get('content-encoding')).toBe(coding)
    expect(response.headers.get('vary')).toBe('Accept-Encoding')
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    const bytes = await response.bytes()
    expect(bytes.length).toBeLessThan(text.length / 5)
    expect(decoded(bytes)).toBe(text)
  }
  expect(deflated.mock.calls.length).toBeLessThanOrEqual(1)
})

test('the response to HEAD has the length and the coding of that to GET', async () => {
  const bytes = await (await send(PATH, 'gzip')).bytes()
  const { headers } = await send(PATH, 'gzip', { method: 'HEAD' })
  expect(headers.get('content-encoding')).toBe('gzip')
  expect(headers.get('content-length')).toBe(String(bytes.length))
})

test('tokens are never compressed, however long the response is', async () => {
  const owner = await firstOwner(t)
  const response = await send('/v1/auth/refresh', 'gzip, zstd', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refreshToken: owner.refreshToken!.reveal() }),
  })
  expect([response.status, response.headers.get('content-encoding')]).toEqual([200, null])
  expect(response.headers.get('vary')).toBeNull()
  const text = await response.text()
  expect(text.length).toBeGreaterThan(1_024)
  expect(text).toContain('"accessToken":"rk_at_v1_')
})
