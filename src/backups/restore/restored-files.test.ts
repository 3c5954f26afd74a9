/**
 * @module-tag slow
 */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  ADDRESS,
  type BackedUpServer,
  backedUpServer,
  type DocumentsIn,
  RestorePlace,
  write,
} from '../../../testing/backups/backed-up-server.ts'
import { sha256Hex } from '../../system/digests.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import { collect } from '../format/age-files.ts'
import { directoryOf } from '../format/chain.ts'

type NamedBlob = RecordOf<'blob'>

const FILES = ['bytes of a stored file', 'bytes of another one']

let server: BackedUpServer

beforeEach(async () => {
  server = await backedUpServer('sqlite')
  const writes = []
  for (const [i, file] of FILES.entries()) {
    writes.push(write('fil', i, await server.storeFile(Buffer.from(file))))
  }
  await server.commit(1, ...writes)
  await server.base()
})
afterEach(() => server.dispose())

test.each<DocumentsIn>(['sqlite', 'postgres'])(
  'altered bytes that are read once leave nothing behind beside documents in %s',
  async (into) => {
    const { target } = server.parts
    const directory = `${directoryOf(ADDRESS)}/blobs`
    const paths: string[] = []
    for (const shard of await target.names(directory)) {
      for (const name of await target.names(`${directory}/${shard}`)) {
        paths.push(`${directory}/${shard}/${name}`)
      }
    }
    expect(paths).toHaveLength(2)
    const restored = await RestorePlace.make(into)
    for (const path of paths) {
      const bytes = await collect(target.read(path))
      const altered = Uint8Array.from(bytes)
      altered[altered.length - 1]! ^= 1
      await target.write(path, [altered])
      const restoring = restored.restore(server, { hasBlobsInRoot: true })
      await expect(restoring).rejects.toMatchObject({
        code: 'BACKUP_CORRUPT',
        detail: expect.stringContaining(path),
      })
      expect(existsSync(restored.root)).toBe(false)
      await target.write(path, [bytes])
    }
    const result = await restored.restore(server, { hasBlobsInRoot: true })
    expect(result).toMatchObject({ files: 2, fileBytes: FILES.join('').length })
    const blobs = await restored.openBlobs()
    for (const file of FILES) {
      const content = { sha256: sha256Hex(file), size: file.length }
      expect(Buffer.from(await blobs.read(content)).toString()).toBe(file)
    }
    await restored.dispose()
  },
)

test('bytes that are not those of the record are found where they are read once', async () => {
  const { t: _, ...record } = (await server.storeBlob(Buffer.from('other'))) as NamedBlob
  // The files of the target are whole, and only the record names other bytes.
  const wrong = { t: 'blob', ...record, sha256: sha256Hex('another') } as const
  await server.increment({ from: 1, to: 1 }, [wrong])
  const restored = await RestorePlace.make('sqlite')
  const restoring = restored.restore(server, { hasBlobsInRoot: true })
  await expect(restoring).rejects.toMatchObject({
    code: 'BACKUP_CORRUPT',
    detail: expect.stringContaining(record.name),
  })
  expect(existsSync(restored.root)).toBe(false)
  await restored.dispose()
})
