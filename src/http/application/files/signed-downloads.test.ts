/** Signed URLs over real connections: what pages may show with them, and what is rejected. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { ORIGIN } from '../../../../testing/gateways.ts'
import { deleteFile } from '../../../engine/files/file-documents.ts'
import { sealDownload } from '../../../product/files/download-tokens.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { realSystem } from '../../../system/system.ts'

const PICTURE = '\x89PNG and so on'.repeat(4)
const BYTES = new TextEncoder().encode(PICTURE)
const TAG = `"${sha256Hex(BYTES)}"`
const SIZE = BYTES.length

let server: FileServer
let fileId: string
beforeAll(async () => {
  server = await openFileServer()
  fileId = await server.upload(BYTES, 'image/png')
})
afterAll(() => server.close())

/** Sends what `<img>` sends: neither a bearer nor a key. */
const show = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(server.origin + path, { method, headers })

const codeOf = async (reply: Response) => {
  const { error } = (await reply.json()) as { error: { code: string } }
  return [reply.status, error.code]
}

test('a signed URL needs no header, and its page may do nothing', async () => {
  const reply = await show(server.signDownload(fileId, { inline: true, fileName: 'a.png' }))
  expect([reply.status, sha256Hex(await reply.bytes())]).toEqual([200, TAG.slice(1, -1)])
  const expected = {
    'content-type': 'image/png',
    'content-length': String(SIZE),
    etag: TAG,
    'x-service-file-id': fileId,
    'content-disposition': `inline; filename="a.png"; filename*=UTF-8''a.png`,
    'accept-ranges': 'bytes',
    'content-security-policy':
      "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
    'cache-control': 'private, no-cache',
    'cross-origin-resource-policy': 'cross-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  }
  for (const [name, value] of Object.entries(expected)) {
    expect(reply.headers.get(name), name).toBe(value)
  }
})

test.each([
  ['image/png', 'inline'],
  ['IMAGE/JPEG; q=1', 'inline'],
  ['audio/mpeg', 'inline'],
  ['video/mp4', 'inline'],
  ['image/svg+xml', 'attachment'],
  ['image/svg+xml; a=image/png', 'attachment'],
  ['text/html', 'attachment'],
  ['text/plain', 'attachment'],
  ['application/pdf', 'attachment'],
  ['application/xhtml+xml', 'attachment'],
  ['image/pngx', 'attachment'],
])('a file of type %s that may be shown in place is sent as %s', async (contentType, expected) => {
  const id = await server.upload('<svg onload="alert(1)"/>', contentType)
  const reply = await show(server.signDownload(id, { inline: true }))
  expect(reply.headers.get('content-type')).toBe(contentType)
  expect(reply.headers.get('content-disposition')).toBe(expected)
  const saved = await show(server.signDownload(id, { inline: false }))
  expect(saved.headers.get('content-disposition')).toBe('attachment')
})

const END = `bytes 0-1/${SIZE}`
test.each<[string, Record<string, string>, number, number, string | null]>([
  ['one range', { range: 'bytes=0-1' }, 206, 2, END],
  ['the first range of a video', { range: 'bytes=0-' }, 206, SIZE, `bytes 0-${SIZE - 1}/${SIZE}`],
  ['If-Range of this file', { range: 'bytes=0-1', 'if-range': TAG }, 206, 2, END],
  ['If-Range of another', { range: 'bytes=0-1', 'if-range': '"other"' }, 200, SIZE, null],
  ['If-None-Match of this file', { 'if-none-match': TAG }, 304, 0, null],
])(
  'a signed URL honours conditions and ranges: %s',
  async (_, headers, status, length, contentRange) => {
    const reply = await show(server.signDownload(fileId), headers)
    expect([reply.status, (await reply.bytes()).length]).toEqual([status, length])
    expect(reply.headers.get('content-range')).toBe(contentRange)
    expect(reply.headers.get('etag')).toBe(TAG)
  },
)

test('the rejection of an empty range has the length of the file', async () => {
  const reply = await show(server.signDownload(fileId), { range: `bytes=${SIZE}-` })
  expect(reply.headers.get('content-range')).toBe(`bytes */${SIZE}`)
  expect(await codeOf(reply)).toEqual([416, 'RANGE_INVALID'])
})

test('HEAD answers with the headers of the whole file and no body', async () => {
  const reply = await show(server.signDownload(fileId), { range: 'bytes=0-1' }, 'HEAD')
  expect([reply.status, await reply.text()]).toEqual([200, ''])
  expect(reply.headers.get('content-length')).toBe(String(SIZE))
  const other = await show(server.signDownload(fileId), {}, 'POST')
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
})

test('an expired or changed signed URL, or one of another kind, opens nothing', async () => {
  const { keyring } = server.gateway.files
  const path = server.signDownload(fileId)
  const hourAgo = realSystem().nowMicros() - 3_600_000_000n
  const expiresAtMillis = Date.now() + 60_000
  const bearer = sealDownload(keyring, { fileId, expiresAtMillis, fileName: null })
  const disguised = bearer.replace('rk_dnl_', 'rk_url_')
  const invalid = [
    server.signDownload(fileId, { nowMicros: hourAgo }),
    `${path.slice(0, -1)}${path.endsWith('A') ? 'B' : 'A'}`,
    path.slice(0, -4),
    `/v1/files/signed-downloads/${disguised}`,
  ]
  for (const each of invalid) {
    expect(await codeOf(await show(each)), each).toEqual([401, 'GRANT_INVALID'])
  }
  for (const end of [
    bearer,
    'x',
    fileId,
    `${path.slice(-80)}`,
    'rk_url_v1_',
    '%00',
    'a'.repeat(700),
  ]) {
    const malformed = `/v1/files/signed-downloads/${end}`
    expect(await codeOf(await show(malformed)), end).toEqual([400, 'REQUEST_INVALID'])
  }
  expect(await codeOf(await show(`${path}?width=10`))).toEqual([400, 'REQUEST_INVALID'])
  expect(await codeOf(await show(`${path}/x`))).toEqual([404, 'ROUTE_NOT_FOUND'])
  const asBearer = { path: `/v1/files/downloads/${fileId}`, token: path.split('/').at(-1)! }
  expect(await codeOf(await server.get(asBearer))).toEqual([401, 'GRANT_INVALID'])
})

test('a signed URL ends with its file', async () => {
  const id = await server.upload('to be deleted', 'image/png')
  const path = server.signDownload(id)
  const { headers } = await show(path)
  await server.gateway.files.documents.change((transaction) => deleteFile(transaction, id))
  expect(await codeOf(await show(path))).toEqual([404, 'FILE_NOT_FOUND'])
  // Also for a browser that kept the bytes.
  const kept = await show(path, { 'if-none-match': headers.get('etag')! })
  expect(kept.status).toBe(404)
})

test('only pages of listed origins may read a signed URL', async () => {
  const path = server.signDownload(fileId)
  const reply = await show(path, { origin: ORIGIN })
  expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN)
  const other = await show(path, { origin: 'https://other.example' })
  expect(await codeOf(other)).toEqual([403, 'ORIGIN_DENIED'])
})

test('no record and no error shows a signed URL, valid or not', async () => {
  const id = await server.upload('to be logged', 'image/png')
  const path = server.signDownload(id)
  const token = path.split('/').at(-1)!
  const forged = `${path.slice(0, -4)}AAAA`
  const headers = { origin: 'https://other.example' }
  const replies = [
    await show(path),
    await show(path, {}, 'HEAD'),
    await show(path, { range: 'bytes=999-' }),
    await show(path, {}, 'PUT'),
    await show(path, headers),
    await show(path, { ...headers, 'access-control-request-method': 'GET' }, 'OPTIONS'),
    await show(forged),
    await show(`${path}?x=1`),
    await show(`${path}/x`),
    await show(path.replace('/v1/', '/v2/')),
  ]
  await server.gateway.files.documents.change((transaction) => deleteFile(transaction, id))
  replies.push(await show(path))
  const seen = await Promise.all(
    replies.map(async (reply) => JSON.stringify([...reply.headers]) + (await reply.text())),
  )
  // A Function that logs the URL all the same.
  server.log.log.info('function.log', { message: `see ${path}`, data: { path } })
  const metrics = JSON.stringify(server.gateway.metrics.collect(), (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  expect(server.log.text()).toContain('GRANT_INVALID')
  expect(server.log.text()).toContain('rk_url_v1_[redacted]')
  for (const text of [...seen, server.log.text(), metrics]) {
    expect(text).not.toContain(token.slice(10, 60))
    expect(text).not.toContain(token.slice(-40))
  }
})

test('signed downloads are measured as downloads, and their bytes counted', async () => {
  const figures = () => {
    const { counters, histograms } = server.gateway.metrics.collect()
    return [histograms.downloadRequestDurationMicros.count, counters.downloadedBytes]
  }
  const [requests, bytes] = figures()
  await (await show(server.signDownload(fileId), { range: 'bytes=2-4' })).bytes()
  await show(server.signDownload(fileId), {}, 'HEAD')
  expect(figures()).toEqual([requests! + 2, bytes! + 3])
})
