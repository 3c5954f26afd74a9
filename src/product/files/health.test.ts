/** The health of files distinguishes a full disk and damaged bytes from an unreachable store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { testKeyring } from '../../../testing/cursors.ts'
import { S3Server } from '../../../testing/servers/s3-server.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { openSystemDocuments } from '../../engine/files/open-system-documents.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import { FileBlobs } from '../../storage/blobs/file-blobs.ts'
import { S3Blobs } from '../../storage/blobs/s3-blobs.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { DEFAULT_BUCKETS } from '../buckets/admission.ts'
import { type Files, openFilesOf } from './files.ts'
import { storeFile } from './store.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-files-health-'))
  closers.push(() => rmSync(directory, { recursive: true }))
  return directory
}

async function open(blobs: BlobStore): Promise<Files> {
  const system = new TestSystem()
  const store = await openSqliteDocuments(join(newDirectory(), 'documents.db'))
  closers.push(() => store.close())
  const { files } = openFilesOf(
    {
      system,
      blobs,
      log: memoryLog().log,
      metrics: new Metrics(system),
      keyring: testKeyring(),
      buckets: DEFAULT_BUCKETS,
      storageKeys: { find: () => null },
      pauses: { mibMillis: 0, firstMillis: 0, roundMillis: 5 },
    },
    () => ({ documents: openSystemDocuments(store, system) }),
  )
  closers.push(() => files.close())
  return files
}

const status = async (files: Files) => (await files.health()).status

test('files are degraded while the disk has less free space than the floor', {
  tags: ['slow'],
}, async () => {
  const directory = newDirectory()
  const at = async (freeFloorBytes: number) =>
    status(await open(await FileBlobs.open({ directory, freeFloorBytes })))
  expect(await at(2 ** 60)).toBe('degraded')
  expect(await at(0)).toBe('healthy')
})

test('files are degraded while bytes are damaged or missing, until they are whole', {
  tags: ['slow'],
}, async () => {
  const blobs = await FileBlobs.open({ directory: newDirectory(), freeFloorBytes: 0 })
  const files = await open(blobs)
  const store = async () => {
    const staged = await blobs.stage(0)
    await staged.write(new TextEncoder().encode('bytes'))
    const object = { bucket: 'default', key: 'a', contentType: 'text/plain', uploadId: null }
    const { sha256 } = await storeFile(files, staged, object)
    await staged.discard()
    return sha256
  }
  const sha256 = await store()
  expect(await status(files)).toBe('healthy')
  await blobs.quarantine(sha256)
  await expect.poll(() => status(files)).toBe('degraded')
  await store()
  await expect.poll(() => status(files)).toBe('healthy')
})

test('files are unavailable while the S3-compatible store fails, and recover', async () => {
  const s3 = new S3Server()
  closers.push(() => s3.stop())
  const keys = { accessKeyId: 'id', secretAccessKey: 'secret' }
  const address = { endpoint: s3.endpoint, bucket: 'files', region: 'us-east-1', ...keys }
  const environmentId = 'env_01JZ0000000000000000000000'
  const stagingDirectory = join(newDirectory(), 'temporary')
  const files = await open(
    await S3Blobs.open({ address, environmentId, stagingDirectory, freeFloorBytes: 0 }),
  )
  expect(await status(files)).toBe('healthy')
  s3.failure = 'error'
  expect(await status(files)).toBe('unavailable')
  s3.failure = null
  expect(await status(files)).toBe('healthy')
})
