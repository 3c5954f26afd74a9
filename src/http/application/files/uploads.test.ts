/** Uploads over real connections: when a grant is used up, and what a failed upload leaves. */
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { ORIGIN } from '../../../../testing/gateways.ts'
import { listFiles } from '../../../engine/files/file-documents.ts'
import { sha256Hex } from '../../../system/digests.ts'

let server: FileServer
beforeAll(async () => {
  server = await openFileServer()
})
afterAll(() => server.close())

type Body = { readonly file: Record<string, string>; readonly error: { readonly code: string } }
const bodyOf = async (reply: Response) => (await reply.json()) as Body
const codeOf = async (reply: Response) => [reply.status, (await bodyOf(reply)).error.code]

const storedFiles = async () => {
  const { documents } = server.gateway.files
  const page = await documents.read((transaction) =>
    listFiles(transaction, { afterKey: null, limit: 1_000 }),
  )
  return page.files
}

test('an upload is answered with the metadata of the file, and uses its grant', async () => {
  const grant = await server.grantUpload()
  const reply = await server.put(grant, 'hello')
  expect(reply.status).toBe(201)
  expect(reply.headers.get('x-service-request-id')).toMatch(/^req_/)
  expect(reply.headers.get('cache-control')).toBe('no-store')
  expect(await reply.json()).toEqual({
    version: 1,
    status: 'ok',
    requestId: reply.headers.get('x-service-request-id'),
    file: {
      fileId: expect.stringMatching(/^fil_[0-9A-Z]{26}$/),
      uploadId: grant.uploadId,
      contentType: 'text/plain',
      size: '5',
      sha256: sha256Hex('hello'),
      createdAtMicros: expect.stringMatching(/^\d{16}$/),
    },
  })
  expect(await codeOf(await server.put(grant, 'hello'))).toEqual([401, 'GRANT_INVALID'])
})

test('exactly one of 50 simultaneous uploads with one grant succeeds', async () => {
  const before = (await storedFiles()).length
  const grant = await server.grantUpload()
  const bodies = Array.from({ length: 50 }, (_, i) => `body ${i}`.repeat(5_000))
  const replies = await Promise.all(bodies.map((body) => server.put(grant, body)))
  const statuses = replies.map(({ status }) => status).sort()
  expect(statuses).toEqual([201, ...Array.from({ length: 49 }, () => 401)])
  expect((await storedFiles()).length).toBe(before + 1)
  await expect.poll(() => server.staged()).toEqual([])
})

describe('requests that are rejected before the first byte', () => {
  type Rejected = [
    what: string,
    expected: [number, string],
    send: (grant: { path: string; token: string }) => Promise<Response>,
  ]
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  test.each<Rejected>([
    ['no bearer', [401, 'GRANT_INVALID'], (g) => server.put(g, 'x', { authorization: '' })],
    [
      'an Application Key as the bearer',
      [401, 'GRANT_INVALID'],
      (g) => server.put(g, 'x', bearer(server.gateway.key)),
    ],
    [
      'an Application Key and no bearer',
      [401, 'GRANT_INVALID'],
      (g) => server.put(g, 'x', { authorization: '', 'x-service-key': server.gateway.key }),
    ],
    [
      'an operator token',
      [401, 'GRANT_INVALID'],
      (g) => server.put(g, 'x', bearer(`rk_at_v1_${'A'.repeat(43)}`)),
    ],
    [
      'the token of another grant',
      [401, 'GRANT_INVALID'],
      async (g) => server.put({ ...g, token: (await server.grantUpload()).token }, 'x'),
    ],
    [
      'a download grant',
      [401, 'GRANT_INVALID'],
      async (g) =>
        server.put(
          { ...g, ...server.grantDownload('fil_01JZ0000000000000000000000'), path: g.path },
          'x',
        ),
    ],
    [
      'a token with another end',
      [401, 'GRANT_INVALID'],
      (g) => server.put({ ...g, token: `${g.token}A` }, 'x'),
    ],
    [
      'the grant at the path of another',
      [401, 'GRANT_INVALID'],
      async (g) => server.put({ ...(await server.grantUpload()), token: g.token }, 'x'),
    ],
    [
      'a path without a valid ID',
      [400, 'REQUEST_INVALID'],
      (g) => server.put({ ...g, path: '/v1/files/uploads/..%2f..%2fetc' }, 'x'),
    ],
    [
      'an ID in lower case',
      [400, 'REQUEST_INVALID'],
      (g) => server.put({ ...g, path: g.path.toLowerCase() }, 'x'),
    ],
    [
      'the token in the query',
      [400, 'REQUEST_INVALID'],
      (g) => server.put({ ...g, path: `${g.path}?token=${g.token}` }, 'x'),
    ],
    [
      'another type',
      [415, 'MEDIA_TYPE_UNSUPPORTED'],
      (g) => server.put(g, 'x', { 'content-type': 'text/html' }),
    ],
    [
      'the type with a parameter',
      [415, 'MEDIA_TYPE_UNSUPPORTED'],
      (g) => server.put(g, 'x', { 'content-type': 'text/plain; charset=utf-8' }),
    ],
    [
      'a compressed body',
      [415, 'MEDIA_TYPE_UNSUPPORTED'],
      (g) => server.put(g, 'x', { 'content-encoding': 'gzip' }),
    ],
    [
      'a body that is declared too long',
      [413, 'LIMIT_EXCEEDED'],
      (g) => server.put(g, 'x'.repeat(1_000_001)),
    ],
    [
      'a foreign browser origin',
      [403, 'ORIGIN_DENIED'],
      (g) => server.put(g, 'x', { origin: 'https://evil.test' }),
    ],
  ])('a rejected upload leaves the grant usable: %s', async (_, expected, send) => {
    const grant = await server.grantUpload()
    expect(await codeOf(await send(grant))).toEqual(expected)
    expect((await server.put(grant, 'x', { origin: ORIGIN })).status).toBe(201)
  })
})

test('a grant that has expired is rejected', async () => {
  const grant = await server.grantUpload({ expiresInSeconds: 0 })
  expect(await codeOf(await server.put(grant, 'x'))).toEqual([401, 'GRANT_INVALID'])
})

test('the type may be left out, and an empty body is a file', async () => {
  const grant = await server.grantUpload({ maximumBytes: 0 })
  const { path, token } = grant
  const init = { method: 'PUT', headers: { authorization: `Bearer ${token}` } }
  const reply = await fetch(server.origin + path, init)
  expect((await bodyOf(reply)).file).toMatchObject({ size: '0', sha256: sha256Hex('') })
  const used = await fetch(server.origin + path, init)
  expect(used.status).toBe(401)
})

test('a body of unknown length that grows too long is cut off, and its grant is used', async () => {
  const grant = await server.grantUpload({ maximumBytes: 100_000 })
  const chunk = new Uint8Array(40_000)
  let sent = 0
  const body = new ReadableStream({
    pull(controller) {
      if (sent++ === 5) controller.close()
      else controller.enqueue(chunk)
    },
  })
  const before = (await storedFiles()).length
  expect(await codeOf(await server.put(grant, body))).toEqual([413, 'LIMIT_EXCEEDED'])
  expect(await codeOf(await server.put(grant, 'x'))).toEqual([401, 'GRANT_INVALID'])
  expect((await storedFiles()).length).toBe(before)
  await expect.poll(() => server.staged()).toEqual([])
})

describe('interrupted uploads', () => {
  const headOf = ({ path, token }: { path: string; token: string }, length: string) =>
    `PUT ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
    `Content-Type: text/plain\r\n${length}\r\n\r\n`

  test.each([
    ['a declared length', 'Content-Length: 1000', 'a tenth of it'],
    ['an unknown length', 'Transfer-Encoding: chunked', '5\r\nhello\r\n'],
    ['inside a chunk', 'Transfer-Encoding: chunked', 'ff\r\nhello'],
  ])('an interrupted upload leaves only a record: %s', async (_, length, part) => {
    const before = (await storedFiles()).length
    const grant = await server.grantUpload()
    const socket = server.socket()
    await once(socket, 'connect')
    socket.write(headOf(grant, length) + part)
    await expect.poll(() => server.staged().length).toBe(1)
    // The grant is used once the first byte is accepted.
    await expect.poll(async () => (await server.put(grant, 'x')).status).toBe(401)
    socket.destroy()
    await expect.poll(() => server.staged()).toEqual([])
    await expect
      .poll(() => server.log.records().filter(({ uploadId }) => uploadId === grant.uploadId))
      .toMatchObject([{ event: 'files.upload_failed' }])
    expect((await storedFiles()).length).toBe(before)
  })

  test('an upload interrupted before its first byte leaves the grant usable', async () => {
    const grant = await server.grantUpload()
    const socket = server.socket()
    await once(socket, 'connect')
    socket.write(headOf(grant, 'Content-Length: 1000'))
    await expect.poll(() => server.staged().length).toBe(1)
    socket.destroy()
    await expect.poll(() => server.staged()).toEqual([])
    expect((await server.put(grant, 'x')).status).toBe(201)
  })
})

test('a key that exists is replaced, and the old file is gone in the same commit', async () => {
  const key = 'a/../b %2f\u00e9'
  const first = await bodyOf(await server.put(await server.grantUpload({ key }), 'one'))
  const second = await bodyOf(await server.put(await server.grantUpload({ key }), 'two'))
  const named = (await storedFiles()).filter((file) => file.key === key)
  expect(named.map(({ fileId }) => fileId)).toEqual([second.file.fileId])
  const old = server.grantDownload(first.file.fileId!)
  expect(await codeOf(await server.get(old))).toEqual([404, 'FILE_NOT_FOUND'])
})

test('concurrent uploads to one key leave one file', async () => {
  const key = 'contended'
  const grants = await Promise.all(Array.from({ length: 20 }, () => server.grantUpload({ key })))
  const replies = await Promise.all(grants.map((grant, i) => server.put(grant, `body ${i}`)))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]))
  expect((await storedFiles()).filter((file) => file.key === key)).toHaveLength(1)
})

test('no token is in the log', async () => {
  const grant = await server.grantUpload()
  await server.put(grant, 'x')
  await server.put(grant, 'x')
  expect(JSON.stringify(server.log.records())).not.toContain(grant.token.slice(-20))
})
