/** The removal of bytes and its time: metadata alone decides, and no upload loses its bytes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testKeyring } from '../../../testing/cursors.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { deleteFile } from '../../engine/files/file-documents.ts'
import { openSystemDocuments } from '../../engine/files/open-system-documents.ts'
import { FileBlobs } from '../../storage/blobs/file-blobs.ts'
import { sha256Hex } from '../../system/digests.ts'
import { TestSystem } from '../../system/system.ts'
import { type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { DEFAULT_BUCKETS } from '../buckets/admission.ts'
import { BucketUsage } from './bucket-usage.ts'
import { FileCollection } from './collection.ts'
import { abortMultipart, beginMultipart, storePart } from './multipart.ts'
import type { FilePorts } from './ports.ts'
import { Scrubber } from './scrubber.ts'
import { storeFile } from './store.ts'

const NO_PAUSES = { mibMillis: 0, firstMillis: 0, roundMillis: 5 }

let directory: string
let system: TestSystem
let log: MemoryLog
let store: DocumentStore
let ports: FilePorts & { readonly collection: FileCollection }

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-files-'))
  system = new TestSystem()
  log = memoryLog()
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  ports = await open()
})
afterEach(async () => {
  await ports.collection.close()
  await store.close()
  rmSync(directory, { recursive: true })
})

async function open() {
  const documents = openSystemDocuments(store, system)
  const blobs = await FileBlobs.open({ directory: join(directory, 'files'), freeFloorBytes: 0 })
  const options = { system, log: log.log, documents, blobs }
  const collection = new FileCollection(options)
  const usage = new BucketUsage(options)
  const tracked = { collection, usage, uploadsBegun: new Set<string>() }
  return { ...options, keyring: testKeyring(), buckets: DEFAULT_BUCKETS, ...tracked }
}

async function put(text: string, key: string | null = null): Promise<string> {
  const staged = await ports.blobs.stage(0)
  await staged.write(new TextEncoder().encode(text))
  const object = { bucket: 'default', key, contentType: 'text/plain', uploadId: null }
  const { fileId } = await storeFile(ports, staged, object)
  return fileId
}

const remove = (fileId: string) =>
  ports.documents.change((transaction) => deleteFile(transaction, fileId))

async function stored(): Promise<string[]> {
  const found: string[] = []
  for await (const { sha256 } of ports.blobs.list()) found.push(sha256)
  return found.sort()
}

const digests = (...texts: string[]) => texts.map((text) => sha256Hex(text)).sort()

test('bytes stay for half a minute after their last file', async () => {
  const fileId = await put('a')
  await put('b')
  await ports.collection.collect()
  await remove(fileId)
  system.advance(29_999)
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('a', 'b'))
  system.advance(1)
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('b'))
})

test('bytes that another file has stay, and are removed after the last one', async () => {
  const first = await put('same')
  const second = await put('same')
  await remove(first)
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('same'))
  await remove(second)
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual([])
})

test('bytes that are stored again before they are removed stay', async () => {
  await remove(await put('again'))
  system.advance(29_000)
  await put('again')
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('again'))
})

test('the bytes of a replaced object are removed', { tags: ['slow'] }, async () => {
  await put('old', 'key')
  await put('new', 'key')
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('new'))
})

test('the bytes of a part whose upload was aborted meanwhile are removed', async () => {
  // The first run lists all bytes; later ones check only bytes that were suspected.
  await ports.collection.collect()
  const address = { bucket: 'default', key: 'joined' }
  const upload = { ...address, contentType: 'text/plain', headers: new Map() }
  const multipartId = await beginMultipart(ports, upload)
  const staged = await ports.blobs.stage(0)
  await staged.write(new TextEncoder().encode('late'))
  await abortMultipart(ports, { ...address, multipartId })
  const part = { number: 1, reservation: ports.usage.reserve(), etag: '0'.repeat(32) }
  expect(await storePart(ports, staged, { ...address, multipartId }, part)).toBe(false)
  expect(await stored()).toEqual(digests('late'))
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual([])
})

test('bytes stay while their metadata is committed, and are removed if that fails', async () => {
  const failing = Promise.withResolvers<void>()
  const staged = await ports.blobs.stage(0)
  await staged.write(new TextEncoder().encode('held'))
  const { sha256 } = await staged.finish()
  const held = ports.collection.hold(sha256, async () => {
    await staged.commit()
    await failing.promise
  })
  await expect.poll(stored).toEqual([sha256])
  await remove(await put('held'))
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual([sha256])
  failing.reject(new Error('no commit'))
  await expect(held).rejects.toThrow('no commit')
  system.advance(60_000)
  await ports.collection.collect()
  expect(await stored()).toEqual([])
})

test('an upload that starts while its bytes are removed stores them again', async () => {
  const fileId = await put('contended')
  await remove(fileId)
  system.advance(60_000)
  const { blobs } = ports
  const { remove: removeBytes } = blobs
  const started = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  blobs.remove = async (sha256) => {
    started.resolve()
    await released.promise
    await removeBytes.call(blobs, sha256)
  }
  const collected = ports.collection.collect()
  await started.promise
  const storing = put('contended')
  released.resolve()
  await Promise.all([collected, storing])
  expect(await stored()).toEqual(digests('contended'))
})

test('a file that is stored while its bytes are looked up keeps them', async () => {
  await remove(await put('looked up'))
  system.advance(60_000)
  const { documents } = ports
  const read = documents.read.bind(documents)
  const looked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  documents.read = async (body) => {
    const found = await read(body)
    looked.resolve()
    await released.promise
    return found
  }
  const collected = ports.collection.collect()
  await looked.promise
  await put('looked up')
  released.resolve()
  await collected
  expect(await stored()).toEqual(digests('looked up'))
})

test('the next start removes the bytes that a killed process left, and no others', async () => {
  await put('kept')
  const staged = await ports.blobs.stage(0)
  await staged.write(new TextEncoder().encode('left'))
  await staged.finish()
  await staged.commit()
  await ports.collection.close()
  ports = await open()
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('kept'))
})

test('a failure to remove bytes is logged, and repaired by a later run', async () => {
  await remove(await put('stubborn'))
  system.advance(60_000)
  const { blobs } = ports
  const { remove: removeBytes } = blobs
  blobs.remove = async () => {
    throw new Error('disk')
  }
  await ports.collection.collect()
  expect(log.records().map(({ event }) => event)).toContain('files.collection_failed')
  blobs.remove = removeBytes
  await ports.collection.collect()
  expect(await stored()).toEqual([])
})

test('the scrubber finds damage, reports it once, and forgets what was repaired', async () => {
  await put('whole')
  const fileId = await put('damaged')
  const [sha256] = digests('damaged')
  await ports.blobs.quarantine(sha256!)
  const options = { log: log.log, documents: ports.documents, blobs: ports.blobs }
  const scrubber = new Scrubber({ ...options, pauses: NO_PAUSES })
  scrubber.start()
  await expect.poll(() => scrubber.damaged).toBe(1)
  const found = () => log.records().filter(({ event }) => event === 'files.damaged')
  expect(found()).toMatchObject([{ fileId, sha256, condition: 'missing' }])
  await put('damaged')
  await expect.poll(() => scrubber.damaged).toBe(0)
  expect(found()).toHaveLength(1)
  await scrubber.close()
})

test('bytes of deleted files stay while the collection is paused', async () => {
  const fileId = await put('a')
  const [resume, resumeOther] = [ports.collection.pause(), ports.collection.pause()]
  await remove(fileId)
  system.advance(31_000)
  await ports.collection.collect()
  resume()
  resume()
  await ports.collection.collect()
  expect(await stored()).toEqual(digests('a'))
  resumeOther()
  await ports.collection.collect()
  expect(await stored()).toEqual([])
})
