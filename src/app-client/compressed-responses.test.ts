/**
 * The bound on a response counts decompressed bytes, for any server.
 *
 * @module-tag slow
 */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from './browser.ts'
import type { Query } from './references.ts'

const list = { kind: 'query', name: 'm.list', arguments: {} } as Query<
  Record<string, never>,
  string,
  never
>
const REQUEST_ID = `req_${'0'.repeat(26)}`
const RELEASE_ID = `rel_${'0'.repeat(26)}`
const BYTES_MAX = 1024 * 1024

let server: Bun.Server<undefined>
let compress: (text: string) => Uint8Array<ArrayBuffer>
let [coding, count] = ['', 0]

beforeAll(() => {
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => answer(),
  })
})
afterAll(() => server.stop(true))

function answer(): Response {
  const body = JSON.stringify({
    version: 1,
    status: 'ok',
    requestId: REQUEST_ID,
    releaseId: RELEASE_ID,
    result: { type: 'string', value: 'x'.repeat(count) },
    metadata: { kind: 'query', snapshotSequence: '1' },
  })
  return new Response(compress(body), {
    headers: {
      'content-type': 'application/json',
      'content-encoding': coding,
      'x-service-request-id': REQUEST_ID,
      'x-service-release-id': RELEASE_ID,
    },
  })
}

test.each([
  ['gzip', gzipSync],
  ['zstd', zstdCompressSync],
])('a response in %s is read up to the bound, and no further', async (name, compressed) => {
  coding = name
  compress = (text) => new Uint8Array(compressed(text))
  const client = createClient({
    url: server.url.href,
    applicationKey: 'key',
    target: 'channel:production',
    responseBytesMax: BYTES_MAX,
  })
  count = BYTES_MAX - 1_000
  expect(await client.query(list)).toBe('x'.repeat(count))
  // Both have a few kilobytes on the wire.
  for (const beyond of [BYTES_MAX, 100 * BYTES_MAX]) {
    count = beyond
    await expect(client.query(list)).rejects.toMatchObject({ code: 'CLIENT_RESPONSE_INVALID' })
  }
  client.close()
})
