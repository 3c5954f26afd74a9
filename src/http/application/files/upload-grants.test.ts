/** Upload grants in the document store, over real connections. */
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import {
  type FileDocument,
  isUsedUpload,
  listFiles,
  readUpload,
  storedJson,
} from '../../../engine/files/file-documents.ts'
import { removeExpiredUploads } from '../../../product/files/uploads.ts'
import { secretDigest } from '../../../system/digests.ts'
import { OBJECT_KEY_BYTES_MAX, UPLOAD_DOCUMENTS } from '../../../value/files/files.ts'
import { Timestamp } from '../../../value/values.ts'

let server: FileServer
beforeAll(async () => {
  server = await openFileServer()
})
afterAll(() => server.close())

const read = (id: string | undefined) =>
  server.gateway.files.documents.read((transaction) => readUpload(transaction, id!))

async function filesOf(uploadId: string): Promise<readonly FileDocument[]> {
  const { documents } = server.gateway.files
  const page = await documents.read((transaction) =>
    listFiles(transaction, { afterKey: null, limit: 1_000 }),
  )
  return page.files.filter((file) => file.uploadId === uploadId)
}

test('a grant is stored when it is used, and in the commit of its file', async () => {
  const grant = await server.grantUpload()
  expect(await read(grant.uploadId)).toBeNull()
  const commits: boolean[] = []
  const { documents, uploadsBegun } = server.gateway.files
  const stop = documents.listen((changes) => {
    const ours = changes.some(({ after }) => after?.get('uploadId') !== undefined)
    if (ours) void read(grant.uploadId).then((used) => commits.push(used !== null))
  })
  expect((await server.put(grant, 'x')).status).toBe(201)
  stop()
  const used = (await read(grant.uploadId))!
  expect(isUsedUpload(used)).toBe(true)
  expect(used.expiresAtMicros).toBe(grant.expiresAtMicros)
  expect(commits).toEqual([true])
  expect(uploadsBegun.size).toBe(0)
})

test('a grant whose upload failed is durable as used before the failure is answered', async () => {
  const grant = await server.grantUpload({ maximumBytes: 10 })
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(20))
      controller.close()
    },
  })
  expect((await server.put(grant, body)).status).toBe(413)
  expect(isUsedUpload((await read(grant.uploadId))!)).toBe(true)
  expect(server.gateway.files.uploadsBegun.size).toBe(0)
})

test('exactly one of two uploads that do not know of each other stores a file', async () => {
  const grant = await server.grantUpload()
  const socket = server.socket()
  await once(socket, 'connect')
  let reply = ''
  socket.on('data', (data) => {
    reply += String(data)
  })
  const head = `PUT ${grant.path} HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer ${grant.token}`
  socket.write(`${head}\r\ncontent-length: 10\r\n\r\nfirst`)
  const { uploadsBegun } = server.gateway.files
  await expect.poll(() => uploadsBegun.size).toBe(1)
  // Another process has reservations of its own.
  uploadsBegun.clear()
  expect((await server.put(grant, 'second')).status).toBe(201)
  socket.write('first')
  await expect.poll(() => reply).toContain('GRANT_INVALID')
  expect(await filesOf(grant.uploadId)).toMatchObject([{ size: 6n }])
  socket.destroy()
})

test('a grant that an earlier release stored is used once', async () => {
  const { documents, keyring, system } = server.gateway.files
  const token = `rk_upl_v1_${'A'.repeat(43)}`
  const digest = secretDigest(
    keyring.derive(keyring.activeId, 'upload-grant'),
    'upload-grant',
    token,
  )
  const expiresAt = new Timestamp(system.nowMicros() + 60_000_000n)
  const terms = { bucket: 'default', key: null, contentType: 'text/plain', maximumBytes: 5n }
  const keyed = { digest: new Uint8Array(digest), keyId: keyring.activeId }
  const fields = { ...terms, ...keyed, releaseId: server.gateway.releaseId, expiresAt }
  const uploadId = await documents.change((transaction) =>
    transaction.insert(UPLOAD_DOCUMENTS, storedJson(fields)),
  )
  const grant = { path: `/v1/files/uploads/${uploadId}`, token }
  const forged = { ...grant, token: `rk_upl_v1_${'B'.repeat(43)}` }
  expect((await server.put(forged, 'x')).status).toBe(401)
  expect((await server.put(grant, 'longer than five')).status).toBe(413)
  expect((await server.put(grant, 'x')).status).toBe(201)
  expect((await server.put(grant, 'x')).status).toBe(401)
  expect(await filesOf(uploadId)).toHaveLength(1)
})

test('a token carries the longest key, and reveals neither it nor the bucket', async () => {
  const key = '\u00e9'.repeat(OBJECT_KEY_BYTES_MAX / 2)
  const grant = await server.grantUpload({ key })
  expect((await server.put(grant, 'x')).status).toBe(201)
  expect(await filesOf(grant.uploadId)).toMatchObject([{ key }])
  const sealed = Buffer.from(grant.token.slice('rk_upl_v1_'.length), 'base64url').toString()
  expect(sealed).not.toContain('\u00e9\u00e9')
  expect(sealed).not.toContain('default')
})

test('a used grant is removed once it has expired, and stays invalid', async () => {
  const { files } = server.gateway
  const grant = await server.grantUpload()
  expect((await server.put(grant, 'x')).status).toBe(201)
  const later = { ...files.system, nowMicros: () => grant.expiresAtMicros + 1n }
  await removeExpiredUploads({ ...files, system: later })
  expect(await read(grant.uploadId)).toBeNull()
  const expired = await server.grantUpload({ expiresInSeconds: 0 })
  expect((await server.put(expired, 'x')).status).toBe(401)
})
