/** Uploads to a full disk: a file system of 4 MiB that only this test uses. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testKeyring } from '../../../testing/cursors.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { openSystemDocuments } from '../../engine/files/open-system-documents.ts'
import { FileBlobs } from '../../storage/blobs/file-blobs.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { DEFAULT_BUCKETS } from '../buckets/admission.ts'
import { BucketUsage } from './bucket-usage.ts'
import { FileCollection } from './collection.ts'
import { readObject } from './objects.ts'
import type { FilePorts } from './ports.ts'
import { storeFile } from './store.ts'

const MIB = 1024 ** 2
const directory = mkdtempSync(join(tmpdir(), 'svc-full-disk-'))
const disk = join(directory, 'disk')
mkdirSync(disk)
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
const isMounted = mounted.status === 0

let store: DocumentStore
let ports: FilePorts
beforeAll(async () => {
  if (!isMounted) return
  store = await openSqliteDocuments(join(directory, 'documents.db'))
  const system = new TestSystem()
  const documents = openSystemDocuments(store, system)
  const blobs = await FileBlobs.open({ directory: join(disk, 'files'), freeFloorBytes: 0 })
  const base = { system, log: memoryLog().log, documents, blobs, keyring: testKeyring() }
  const usage = new BucketUsage(base)
  const collection = new FileCollection(base)
  ports = { ...base, usage, collection, uploadsBegun: new Set(), buckets: DEFAULT_BUCKETS }
})
afterAll(async () => {
  await store?.close()
  if (isMounted) spawnSync('umount', [disk])
  rmSync(directory, { recursive: true, force: true })
})

async function put(key: string, bytes: number): Promise<unknown> {
  // The client announces no length, so the disk is full in the middle.
  const staged = await ports.blobs.stage(0)
  try {
    for (let left = bytes; left > 0; left -= 64 * 1024) {
      await staged.write(crypto.getRandomValues(new Uint8Array(Math.min(left, 64 * 1024))))
    }
    return await storeFile(ports, staged, {
      bucket: 'default',
      key,
      contentType: 'a/b',
      uploadId: null,
    })
  } finally {
    await staged.discard()
  }
}

const WHY = 'a file system of its own needs the right to mount one'

test.skipIf(!isMounted)(
  `an upload to a full disk leaves nothing, and the next one works (${WHY})`,
  async () => {
    await put('kept', MIB)
    await expect(put('large', 5 * MIB)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(readdirSync(join(disk, 'files/temporary'))).toEqual([])
    expect(await readObject(ports, 'default', 'large')).toBeNull()
    const { sha256, size } = (await readObject(ports, 'default', 'kept'))!
    const content = { sha256, size: Number(size) }
    expect(await ports.blobs.check(content, { quick: false })).toBe('whole')
    // Something else fills the disk to the last byte.
    const filler = join(disk, 'filler')
    expect(() => writeFileSync(filler, new Uint8Array(4 * MIB))).toThrow('ENOSPC')
    await expect(put('small', 64 * 1024)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect((await ports.blobs.read(content)).length).toBe(MIB)
    rmSync(filler)
    await put('small', 64 * 1024)
    expect(readdirSync(join(disk, 'files/temporary'))).toEqual([])
  },
)
