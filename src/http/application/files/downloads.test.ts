/** Downloads over real connections: ranges, conditions, grants, and what browsers may do. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { ORIGIN } from '../../../../testing/gateways.ts'
import { deleteFile } from '../../../engine/files/file-documents.ts'
import { sha256Hex } from '../../../system/digests.ts'

const TEXT = 'abcdefghijklmnopqrstuvwxyz'
const TAG = `"${sha256Hex(TEXT)}"`

let server: FileServer
let fileId: string
beforeAll(async () => {
  server = await openFileServer()
  fileId = await server.upload(TEXT)
})
afterAll(() => server.close())

const codeOf = async (reply: Response) => {
  const { error } = (await reply.json()) as { error: { code: string } }
  return [reply.status, error.code]
}

test('a download is an attachment that no browser executes', async () => {
  const reply = await server.get(server.grantDownload(fileId))
  expect([reply.status, await reply.text()]).toEqual([200, TEXT])
  const expected = {
    'content-type': 'text/plain',
    'content-length': '26',
    etag: TAG,
    'x-service-file-id': fileId,
    'content-disposition': 'attachment',
    'accept-ranges': 'bytes',
    'content-security-policy': 'sandbox',
    'cache-control': 'private, no-store',
    'x-content-type-options': 'nosniff',
  }
  for (const [name, value] of Object.entries(expected)) {
    expect(reply.headers.get(name), name).toBe(value)
  }
  expect(reply.headers.get('x-service-request-id')).toMatch(/^req_/)
})

test.each<[string, Record<string, string>, number, string, string | null]>([
  ['one range', { range: 'bytes=2-4' }, 206, 'cde', 'bytes 2-4/26'],
  ['an open range', { range: 'bytes=23-' }, 206, 'xyz', 'bytes 23-25/26'],
  ['a suffix', { range: 'bytes=-2' }, 206, 'yz', 'bytes 24-25/26'],
  ['the whole as a range', { range: 'bytes=0-' }, 206, TEXT, 'bytes 0-25/26'],
  ['a range beyond the end', { range: 'bytes=20-99' }, 206, 'uvwxyz', 'bytes 20-25/26'],
  ['several ranges', { range: 'bytes=0-1,3-4' }, 200, TEXT, null],
  ['a malformed range', { range: 'bytes=4-2' }, 200, TEXT, null],
  ['another unit', { range: 'items=0-1' }, 200, TEXT, null],
  ['If-Range of this file', { range: 'bytes=0-1', 'if-range': TAG }, 206, 'ab', 'bytes 0-1/26'],
  ['If-Range of another', { range: 'bytes=0-1', 'if-range': '"other"' }, 200, TEXT, null],
  ['a weak If-Range', { range: 'bytes=0-1', 'if-range': `W/${TAG}` }, 200, TEXT, null],
  ['If-None-Match of this file', { 'if-none-match': TAG }, 304, '', null],
  ['If-None-Match before a range', { 'if-none-match': TAG, range: 'bytes=0-1' }, 304, '', null],
  ['If-None-Match of another', { 'if-none-match': '"other"' }, 200, TEXT, null],
  ['If-Match is ignored', { 'if-match': '"other"' }, 200, TEXT, null],
])(
  'a download honours conditions and ranges: %s',
  async (_, headers, status, body, contentRange) => {
    const reply = await server.get(server.grantDownload(fileId), headers)
    expect([reply.status, await reply.text()]).toEqual([status, body])
    expect(reply.headers.get('content-range')).toBe(contentRange)
    expect(reply.headers.get('etag')).toBe(TAG)
    if (status !== 304) expect(reply.headers.get('content-length')).toBe(String(body.length))
  },
)

test('the rejection of an empty range has the length of the file', async () => {
  const reply = await server.get(server.grantDownload(fileId), { range: 'bytes=26-' })
  expect(reply.headers.get('content-range')).toBe('bytes */26')
  expect(await codeOf(reply)).toEqual([416, 'RANGE_INVALID'])
})

test('HEAD ignores ranges and answers with the headers of the whole file and no body', async () => {
  const reply = await server.get(server.grantDownload(fileId), { range: 'bytes=0-1' }, 'HEAD')
  expect([reply.status, await reply.text()]).toEqual([200, ''])
  expect(reply.headers.get('content-length')).toBe('26')
  expect(reply.headers.get('etag')).toBe(TAG)
  const failed = await server.get({ ...server.grantDownload(fileId), token: 'x' }, {}, 'HEAD')
  expect(failed.status).toBe(401)
})

test('an empty file is downloaded whole', async () => {
  const empty = await server.upload('')
  const reply = await server.get(server.grantDownload(empty))
  expect([reply.status, await reply.text()]).toEqual([200, ''])
  expect(reply.headers.get('content-length')).toBe('0')
})

test('a download grant admits many simultaneous uses', async () => {
  const grant = server.grantDownload(fileId)
  const replies = await Promise.all(Array.from({ length: 50 }, () => server.get(grant)))
  expect(new Set(await Promise.all(replies.map((reply) => reply.text())))).toEqual(new Set([TEXT]))
})

test('a long file arrives whole, and its parts are those of the whole', async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(65_536))
  const long = new Uint8Array(900_000).map((_, i) => bytes[(i * 7) % bytes.length]!)
  const id = await server.upload(long)
  const whole = new Uint8Array(await (await server.get(server.grantDownload(id))).arrayBuffer())
  expect(sha256Hex(whole)).toBe(sha256Hex(long))
  const part = await server.get(server.grantDownload(id), { range: 'bytes=100000-899998' })
  const received = new Uint8Array(await part.arrayBuffer())
  expect(sha256Hex(received)).toBe(sha256Hex(long.subarray(100_000, 899_999)))
})

test.each<[string, string | null, string]>([
  ['a plain name', 'report.pdf', `attachment; filename="report.pdf"; filename*=UTF-8''report.pdf`],
  [
    'a name with quotes',
    'a"b\u00e9 (1)%.txt',
    `attachment; filename="a_b_ (1)_.txt"; filename*=UTF-8''a%22b%C3%A9%20%281%29%25.txt`,
  ],
])('the file name of a download is escaped: %s', async (_, name, expected) => {
  const reply = await server.get(server.grantDownload(fileId, name))
  expect(reply.headers.get('content-disposition')).toBe(expected)
})

test('a grant opens nothing but its own file', async () => {
  const other = await server.upload('other')
  const grant = server.grantDownload(fileId)
  const upload = await server.grantUpload()
  const { path } = server.grantDownload(other)
  const wrong: { path: string; token: string }[] = [
    { path, token: grant.token },
    { path: grant.path, token: upload.token },
    { path: grant.path, token: server.gateway.key },
    {
      path: grant.path,
      token: `${grant.token.slice(0, -1)}${grant.token.endsWith('A') ? 'B' : 'A'}`,
    },
    { path: grant.path, token: grant.token.slice(0, -4) },
  ]
  for (const each of wrong) {
    expect(await codeOf(await server.get(each)), each.path).toEqual([401, 'GRANT_INVALID'])
  }
  for (const id of ['..%2f..%2fetc', 'fil_', `${fileId}0`, fileId.toLowerCase(), '%00', '%ff']) {
    const malformed = { ...grant, path: `/v1/files/downloads/${id}` }
    expect(await codeOf(await server.get(malformed)), id).toEqual([400, 'REQUEST_INVALID'])
  }
  const inQuery = { ...grant, path: `${grant.path}?token=${grant.token}` }
  expect(await codeOf(await server.get(inQuery))).toEqual([400, 'REQUEST_INVALID'])
})

test('a deleted file is not found, even with a valid grant', async () => {
  const id = await server.upload('to be deleted')
  const grant = server.grantDownload(id)
  expect((await server.get(grant)).status).toBe(200)
  await server.gateway.files.documents.change((transaction) => deleteFile(transaction, id))
  expect(await codeOf(await server.get(grant))).toEqual([404, 'FILE_NOT_FOUND'])
})

test('pages of a listed origin may read a download, and send its conditions', async () => {
  const { path, token } = server.grantDownload(fileId)
  const preflight = await fetch(server.origin + path, {
    method: 'OPTIONS',
    headers: { origin: ORIGIN, 'access-control-request-method': 'GET' },
  })
  expect(preflight.status).toBe(204)
  expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS')
  const allowed = preflight.headers.get('access-control-allow-headers')!
  for (const name of ['Authorization', 'Range', 'If-Range', 'If-None-Match']) {
    expect(allowed).toContain(name)
  }
  const reply = await server.get({ path, token }, { origin: ORIGIN })
  expect(reply.headers.get('access-control-allow-origin')).toBe(ORIGIN)
  const exposed = reply.headers.get('access-control-expose-headers')!
  const names = ['ETag', 'Content-Range', 'Content-Length', 'X-Service-File-Id']
  for (const name of [...names, 'Content-Disposition']) {
    expect(exposed).toContain(name)
  }
})

test.each([
  ['POST', '/v1/files/uploads/x', 405],
  ['DELETE', '/v1/files/downloads/x', 405],
  ['GET', '/v1/files/uploads/x', 405],
  ['PUT', '/v1/files/downloads/x', 405],
  ['PUT', '/v1/files/uploads/', 404],
  ['GET', '/v1/files/downloads/x/y', 404],
  ['GET', '/v1/files', 404],
])('%s %s is no transfer', async (method, path, status) => {
  expect((await fetch(server.origin + path, { method })).status).toBe(status)
})

test('transfers are measured, and their bytes counted', async () => {
  const figures = () => {
    const { counters, histograms } = server.gateway.metrics.collect()
    const { uploadRequestDurationMicros, downloadRequestDurationMicros } = histograms
    return [
      [uploadRequestDurationMicros.count, counters.uploadedBytes],
      [downloadRequestDurationMicros.count, counters.downloadedBytes],
    ]
  }
  const before = figures()
  const id = await server.upload(TEXT)
  await (await server.get(server.grantDownload(id), { range: 'bytes=2-4' })).text()
  // Neither HEAD, nor a file that the client has, nor a wrong grant transfers bytes.
  await server.get(server.grantDownload(id), {}, 'HEAD')
  await server.get(server.grantDownload(id), { 'if-none-match': TAG })
  await (await server.get({ ...server.grantDownload(id), token: 'x' })).text()
  const grown = figures().map((pair, i) => pair.map((value, j) => value - before[i]![j]!))
  expect(grown).toEqual([
    [1, TEXT.length],
    [4, 3],
  ])
})
