/** Compressed responses behind the proxies of this machine, with the shipped configurations. */
import { request } from 'node:https'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../testing/files/file-servers.ts'
import { functionManifest } from '../../../testing/products.ts'
import {
  APPLICATION_HOST,
  CADDY,
  NGINX,
  type RunningProxy,
} from '../../../testing/servers/proxies.ts'

const RESULT = 'a result '.repeat(1_000)
const query = { clients: ['confidential'], returns: { type: 'string' } } as const

let server: FileServer
beforeAll(async () => {
  server = await openFileServer({
    functions: [
      functionManifest('a.private', { ...query, compress: false }),
      functionManifest('a.text', query),
    ],
    tables: [],
    handlers: { 'a.private': () => RESULT, 'a.text': () => RESULT },
  })
})
afterAll(() => server.close())

interface Received {
  readonly encoding: string | undefined
  readonly vary: string
  readonly bytes: Buffer
}

describe.each([
  ['nginx', NGINX, ''],
  ['nginx that compresses by itself', NGINX, 'gzip on; gzip_proxied any; gzip_types *;'],
  ['Caddy', CADDY, ''],
] as const)('behind %s', (_, kind, directives) => {
  const where = kind.installed ? 'as shipped' : `which is not at ${kind.executable}`

  describe.skipIf(!kind.installed)(where, () => {
    let proxy: RunningProxy
    beforeAll(async () => {
      const { host } = new URL(server.origin)
      proxy = await kind.start({ management: host, application: host, directives })
    })
    afterAll(() => proxy?.stop())

    const call = (name: string, acceptEncoding: string) =>
      new Promise<Received>((resolve, reject) => {
        const sent = request({
          method: 'POST',
          host: '127.0.0.1',
          port: proxy.port,
          path: '/v1/query',
          agent: false,
          servername: APPLICATION_HOST,
          rejectUnauthorized: false,
          headers: {
            host: APPLICATION_HOST,
            'content-type': 'application/json',
            'x-service-key': server.gateway.key,
            'accept-encoding': acceptEncoding,
          },
        })
        sent.once('error', reject)
        sent.once('response', async (response) => {
          const bytes = Buffer.concat(await response.toArray())
          const { 'content-encoding': encoding, vary = '' } = response.headers
          expect(response.statusCode).toBe(200)
          resolve({ encoding, vary, bytes })
        })
        const target = 'channel:production'
        const given = { type: 'object', value: [] }
        sent.end(JSON.stringify({ version: 1, target, function: name, arguments: given }))
      })

    test.each([
      ['zstd, gzip', 'zstd', zstdDecompressSync],
      ['gzip', 'gzip', gunzipSync],
    ] as const)('a client that accepts %s gets %s once', async (accepted, coding, decoded) => {
      const { encoding, vary, bytes } = await call('a.text', accepted)
      expect([encoding, vary]).toEqual([coding, 'Accept-Encoding'])
      expect(JSON.parse(decoded(bytes).toString()).result.value).toBe(RESULT)
    })

    test('a client that accepts no coding gets the text', async () => {
      const { encoding, bytes } = await call('a.text', 'identity')
      expect(encoding).toBeUndefined()
      expect(JSON.parse(bytes.toString()).result.value).toBe(RESULT)
    })

    test('a response that the server does not compress stays whole', async () => {
      const { encoding, bytes } = await call('a.private', 'gzip')
      // A proxy that compresses by itself knows nothing of secrets, as the guide says.
      expect(encoding).toBe(directives === '' ? undefined : 'gzip')
      const text = encoding === 'gzip' ? gunzipSync(bytes) : bytes
      expect(JSON.parse(text.toString()).result.value).toBe(RESULT)
    })
  })
})
