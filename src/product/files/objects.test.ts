/** Objects, quotas and storage keys over real documents, bytes and a real control database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testKeyring } from '../../../testing/cursors.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { deleteFile } from '../../engine/files/file-documents.ts'
import { openSystemDocuments } from '../../engine/files/open-system-documents.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { FileBlobs } from '../../storage/blobs/file-blobs.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import type { Bucket } from '../buckets/admission.ts'
import { BucketUsage } from './bucket-usage.ts'
import { FileCollection } from './collection.ts'
import { compareKeys, deleteObject, keyAfter, listObjects, readObject } from './objects.ts'
import type { FilePorts } from './ports.ts'
import { type NewObject, storeFile } from './store.ts'

let directory: string
let store: DocumentStore
let ports: FilePorts
const buckets = new Map<string, Bucket>()
const system = new TestSystem()
const log = memoryLog()

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-objects-'))
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  const documents = openSystemDocuments(store, system)
  const blobs = await FileBlobs.open({ directory: join(directory, 'files'), freeFloorBytes: 0 })
  const base = { system, log: log.log, documents, blobs, keyring: testKeyring() }
  const usage = new BucketUsage(base)
  const collection = new FileCollection(base)
  ports = {
    ...base,
    usage,
    collection,
    uploadsBegun: new Set(),
    buckets: { find: (name) => buckets.get(name) ?? null },
  }
})
afterAll(async () => {
  await ports.usage.close()
  await store.close()
  rmSync(directory, { recursive: true })
})

function bucket(name: string, rules: Partial<Omit<Bucket, 'name'>> = {}): string {
  const base = { quotaBytes: null, maximumObjectBytes: null, isArchived: false }
  buckets.set(name, { ...base, ...rules, name })
  return name
}

async function put(name: string, key: string | null, size: number, more: Partial<NewObject> = {}) {
  const staged = await ports.blobs.stage(0)
  try {
    await staged.write(crypto.getRandomValues(new Uint8Array(size)))
    const object = { bucket: name, key, contentType: 'a/b', uploadId: null, ...more }
    return await storeFile(ports, staged, object)
  } finally {
    await staged.discard()
  }
}

const ruleOf = (error: unknown) =>
  isFault(error, 'LIMIT_EXCEEDED') ? error.violations[0]!.path : error
const rejectedBy = (work: Promise<unknown>) => work.then(() => null, ruleOf)

test('50 simultaneous uploads succeed as far as the quota has space', async () => {
  const name = bucket('race', { quotaBytes: 1_000n })
  const uploads = Array.from({ length: 50 }, (_, i) => rejectedBy(put(name, `k${i}`, 100)))
  const outcomes = await Promise.all(uploads)
  expect(outcomes.filter((each) => each === null)).toHaveLength(10)
  expect(outcomes.filter((each) => each === 'quotaBytes')).toHaveLength(40)
  expect(ports.usage.of(name)).toEqual({ files: 10, bytes: 1_000n })
})

test('the quota counts one of 50 simultaneous uploads to one key', async () => {
  const name = bucket('one-key', { quotaBytes: 250n })
  const uploads = Array.from({ length: 50 }, () => rejectedBy(put(name, 'k', 100)))
  const outcomes = await Promise.all(uploads)
  expect(outcomes.filter((each) => each === null).length).toBeGreaterThan(0)
  expect(ports.usage.of(name)).toEqual({ files: 1, bytes: 100n })
})

test('a full bucket admits a smaller replacement, and more once a file is deleted', async () => {
  const name = bucket('full', { quotaBytes: 100n })
  await put(name, 'a', 60)
  const { fileId } = await put(name, null, 40)
  expect(await rejectedBy(put(name, 'b', 1))).toBe('quotaBytes')
  expect(await rejectedBy(put(name, 'a', 61))).toBe('quotaBytes')
  await put(name, 'empty', 0)
  await put(name, 'a', 50)
  await put(name, 'b', 10)
  await ports.documents.change((transaction) => deleteFile(transaction, fileId))
  await put(name, 'c', 40)
  await deleteObject(ports, { bucket: name, key: 'b' })
  await put(name, 'd', 10)
  expect(ports.usage.of(name)).toEqual({ files: 4, bytes: 100n })
})

test('a failed commit releases its part of the quota', async () => {
  const name = bucket('failing', { quotaBytes: 100n })
  const { change } = ports.documents
  ports.documents.change = async (body) => {
    await change.call(ports.documents, async (transaction) => {
      await body(transaction)
      throw new Fault('UNAVAILABLE')
    })
    throw new Error('not reached')
  }
  await expect(put(name, 'a', 100)).rejects.toThrow(
    expect.objectContaining({ code: 'UNAVAILABLE' }),
  )
  ports.documents.change = change
  await put(name, 'a', 100)
})

test('a commit applies the present rules of the bucket, not those at the start', async () => {
  const name = bucket('changing')
  for (const [rules, expected] of [
    [{ isArchived: true }, 'archived'],
    [{ maximumObjectBytes: 9n }, 'maximumObjectBytes'],
    [{ quotaBytes: 9n }, 'quotaBytes'],
  ] as const) {
    bucket(name)
    const hold: FilePorts['collection']['hold'] = (sha256, task) => {
      bucket(name, rules)
      return ports.collection.hold(sha256, task)
    }
    const staged = await ports.blobs.stage(0)
    await staged.write(new Uint8Array(10))
    const object = { bucket: name, key: 'k', contentType: 'a/b', uploadId: null }
    const stored = storeFile(
      { ...ports, collection: { ...ports.collection, hold } },
      staged,
      object,
    )
    expect(await rejectedBy(stored)).toBe(expected)
    await staged.discard()
  }
  expect(await readObject(ports, name, 'k')).toBeNull()
})

test('earlier files are counted once, even if they change while they are read', async () => {
  const name = bucket('counted')
  for (let i = 0; i < 30; i++) await put(name, `k${i}`, i)
  const { documents } = ports
  const changes = [
    () => put(name, 'k1', 100),
    () => put(name, 'new', 1_000),
    () => deleteObject(ports, { bucket: name, key: 'k2' }),
    () => deleteObject(ports, { bucket: name, key: 'k28' }),
    () => put(name, 'k3', 7),
  ]
  // Each change is durable after a page was read and before it arrives.
  const slow = {
    listen: documents.listen.bind(documents),
    read: async (body: Parameters<typeof documents.read>[0]) => {
      const page = await documents.read(body)
      await changes.shift()?.()
      return page
    },
  } as typeof documents
  const again = new BucketUsage({ documents: slow, log: log.log, pageFiles: 20 })
  await again.whenCounted()
  while (changes.length > 0) await changes.shift()!()
  expect(again.of(name)).toEqual({
    files: 29,
    bytes: BigInt(435 - 1 + 100 + 1_000 - 2 - 28 - 3 + 7),
  })
  expect(again.total()).toEqual(ports.usage.total())
  await again.close()
})

test('files whose count failed are counted again when the counts are read', async () => {
  const { documents } = ports
  let isDown = true
  const failing = {
    listen: documents.listen.bind(documents),
    read: async (body: Parameters<typeof documents.read>[0]) => {
      if (isDown) throw new Fault('UNAVAILABLE')
      return documents.read(body)
    },
  } as typeof documents
  const usage = new BucketUsage({ documents: failing, log: log.log })
  usage.start()
  await expect.poll(() => log.text()).toContain('files.usage_not_counted')
  isDown = false
  await expect.poll(() => usage.total()).toEqual(ports.usage.total())
  await usage.close()
})

test('an object is replaced only if the condition allows it', async () => {
  const name = bucket('conditions')
  const requireReplaceable: NewObject['requireReplaceable'] = (replaced) => {
    if (replaced !== null) throw new Fault('WRITE_CONFLICT')
  }
  const uploads = Array.from({ length: 20 }, () => put(name, 'k', 10, { requireReplaceable }))
  const outcomes = await Promise.allSettled(uploads)
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

const KEYS = [
  'a',
  'a/1',
  'a/2',
  'a/b/1',
  'a0',
  'b/',
  'b/x',
  'c\u{ffff}',
  'c\u{10000}',
  'é',
  '..',
  '/x',
]

test('objects are listed by the UTF-8 of their keys, in pages of every size', async () => {
  const name = bucket('listed')
  for (const key of KEYS) await put(name, key, 1)
  await put(name, null, 1)
  const ordered = KEYS.toSorted(compareKeys)
  for (let limit = 1; limit <= KEYS.length + 1; limit++) {
    const keys: string[] = []
    let from: string | null = ''
    while (from !== null) {
      const query = { bucket: name, prefix: '', delimiter: null, from, limit }
      const page: Awaited<ReturnType<typeof listObjects>> = await listObjects(ports, query)
      expect(page.objects.length).toBeGreaterThan(0)
      keys.push(...page.objects.map(({ key }) => key))
      from = page.next
    }
    expect(keys, `pages of ${limit}`).toEqual(ordered)
  }
})

test.each<[string, string, string, readonly string[], readonly string[]]>([
  ['', '/', '', ['..', 'a', 'a0', 'c\u{ffff}', 'c\u{10000}', 'é'], ['/', 'a/', 'b/']],
  ['a/', '/', '', ['a/1', 'a/2'], ['a/b/']],
  ['a', '/', '', ['a', 'a0'], ['a/']],
  ['a/', '/', keyAfter('a/1'), ['a/2'], ['a/b/']],
  ['b/', '/', '', ['b/', 'b/x'], []],
  ['none', '/', '', [], []],
  ['a/', '/', 'b', [], []],
  ['', 'b', '', KEYS.filter((key) => !key.includes('b')), ['a/b', 'b']],
])(
  'a list of %j delimited by %j from %j has the same content in pages of any size',
  async (prefix, delimiter, from, keys, prefixes) => {
    for (const limit of [1, 2, 100]) {
      const found: { keys: string[]; prefixes: string[] } = { keys: [], prefixes: [] }
      let next: string | null = from
      while (next !== null) {
        const query = { bucket: 'listed', prefix, delimiter, from: next, limit }
        const page: Awaited<ReturnType<typeof listObjects>> = await listObjects(ports, query)
        found.keys.push(...page.objects.map(({ key }) => key))
        found.prefixes.push(...page.prefixes)
        next = page.next
      }
      expect(found).toEqual({ keys: keys.toSorted(compareKeys), prefixes })
    }
  },
)

test('a list skips a common prefix of many objects without reading all of them', async () => {
  const name = bucket('deep')
  for (let i = 0; i < 40; i++) await put(name, `deep/${String(i).padStart(3, '0')}`, 1)
  await put(name, 'last', 1)
  let reads = 0
  const documents = {
    read: (body: Parameters<typeof ports.documents.read>[0]) => {
      reads += 1
      return ports.documents.read(body)
    },
  } as FilePorts['documents']
  const query = { bucket: name, prefix: '', delimiter: '/', from: '', limit: 100 }
  const page = await listObjects({ documents }, query)
  expect(page).toMatchObject({ prefixes: ['deep/'], next: null })
  expect(page.objects.map(({ key }) => key)).toEqual(['last'])
  expect(reads).toBe(2)
})
