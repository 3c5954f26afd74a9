/**
 * Downloads over real connections whose readers do not read.
 *
 * @module-tag slow
 */
import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FileServer, openFileServer } from '../../../../testing/files/file-servers.ts'
import { realSystem } from '../../../system/system.ts'
import { Transfers } from '../../transfers/transfers.ts'

const MIB = 1024 * 1024
/** More than the operating system takes for a reader in advance. */
const LONG = new Uint8Array(16 * MIB)
const BOUND = 2
const DEADLINE = { timeout: 60_000 }

const transfers = new Transfers(realSystem(), {
  unfinishedBodyBytesMax: MIB,
  unsentAnswerBytesMax: MIB,
  peerDownloadsMax: BOUND,
})

let server: FileServer
let grant: { path: string; token: string }
let signed: string
beforeAll(async () => {
  server = await openFileServer({ transfers })
  const reply = await server.put(await server.grantUpload({ maximumBytes: LONG.length }), LONG)
  const { file } = (await reply.json()) as { file: { fileId: string } }
  grant = server.grantDownload(file.fileId)
  signed = server.signDownload(file.fileId)
})
afterAll(() => server.close())

/** Opens a download from an address and reads nothing of it. */
async function unread(peer: string, path = grant.path): Promise<Socket> {
  const socket = server.socket()
  const head = `host: a.test\r\nx-forwarded-for: ${peer}\r\nauthorization: Bearer ${grant.token}`
  const before = transfers.downloads.running
  socket.pause().write(`GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`)
  await expect.poll(() => transfers.downloads.running, DEADLINE).toBe(before + 1)
  return socket
}

test('readers that do not read take the downloads of their own address only', async () => {
  const first = await unread('192.0.2.1')
  const second = await unread('192.0.2.1', signed)
  const from = (peer: string) => ({ 'x-forwarded-for': peer, range: `bytes=0-${MIB}` })
  const rejected = await server.get(grant, from('192.0.2.1'))
  const { error } = (await rejected.json()) as { error: { code: string; retryable: boolean } }
  expect([rejected.status, error.code, error.retryable]).toEqual([503, 'BUSY', true])
  expect(rejected.headers.get('retry-after')).toBe('1')
  const alsoRejected = await server.get({ ...grant, path: signed }, from('192.0.2.1'))
  expect(alsoRejected.status).toBe(503)
  // What the operating system takes at once is not counted.
  const short = { ...from('192.0.2.1'), range: 'bytes=0-99' }
  expect((await server.get(grant, short)).status).toBe(206)
  expect((await server.get(grant, short, 'HEAD')).status).toBe(200)
  const other = await server.get(grant, from('192.0.2.2'))
  expect([other.status, (await other.bytes()).length]).toEqual([206, MIB + 1])

  first.destroy()
  second.destroy()
  await expect.poll(() => transfers.downloads.running, DEADLINE).toBe(0)
  const again = await server.get(grant, from('192.0.2.1'))
  expect([again.status, (await again.bytes()).length]).toEqual([206, MIB + 1])
  await expect.poll(() => transfers.downloads.running, DEADLINE).toBe(0)
})
