/**
 * @module-tag slow
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  ADDRESS,
  type BackedUpServer,
  backedUpServer,
  write,
} from '../../../testing/backups/backed-up-server.ts'
import { rehearseInChild } from './rehearsal-child.ts'
import type { RehearsalRequest } from './rehearsal-request.ts'

let server: BackedUpServer
let directory: string

beforeEach(async () => {
  server = await backedUpServer('sqlite')
  directory = join(server.parts.directory, 'rehearsal')
  await server.commit(1, write('notes', 1, '{"body":"one"}'), write('notes', 2, '{"body":"two"}'))
  const file = { ...write('fil', 3, await server.storeFile(Buffer.from('bytes of a file'))) }
  await server.commit(2, file)
})
afterEach(() => server.dispose())

function request(options: Partial<RehearsalRequest> = {}): RehearsalRequest {
  const { target, secret } = server.parts
  return {
    target: { kind: 'directory', path: target.location },
    address: ADDRESS,
    identities: [secret],
    directory,
    freeFloorBytes: 0,
    ...options,
  }
}

const never = () => new AbortController().signal

test('another process restores the backup, and leaves nothing on the disk', async () => {
  await server.base()
  const rehearsed = await rehearseInChild(request(), never())
  expect(rehearsed).toMatchObject({ sequence: 2, documents: 3 })
  expect(rehearsed.merkle).toMatch(/^[0-9a-f]{64}$/)
  expect(existsSync(directory)).toBe(false)
})

test('a damaged file of the backup is named, and nothing is left', async () => {
  await server.base()
  const blobs = join(
    server.parts.target.location,
    ADDRESS.environmentId,
    ADDRESS.historyId,
    'blobs',
  )
  const name = readdirSync(blobs, { recursive: true }).find((each) => String(each).endsWith('.age'))
  const path = join(blobs, String(name))
  const bytes = readFileSync(path)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(path, bytes)
  await expect(rehearseInChild(request(), never())).rejects.toMatchObject({
    code: 'BACKUP_CORRUPT',
    detail: expect.stringContaining('blobs/'),
  })
  expect(existsSync(directory)).toBe(false)
})

test('a rehearsal leaves the free space of the disk that it must', async () => {
  await server.base()
  const whole = rehearseInChild(request({ freeFloorBytes: Number.MAX_SAFE_INTEGER }), never())
  await expect(whole).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(existsSync(directory)).toBe(false)
})

test('a rehearsal ends with the signal', async () => {
  await server.base()
  const abort = new AbortController()
  const ended = rehearseInChild(request(), abort.signal)
  abort.abort(new Error('the server stops'))
  await expect(ended).rejects.toThrow('the server stops')
  expect(existsSync(directory)).toBe(false)
})
