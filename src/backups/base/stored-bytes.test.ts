import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ADDRESS } from '../../../testing/backups/backed-up-server.ts'
import { sha256Hex } from '../../system/digests.ts'
import { realSystem } from '../../system/system.ts'
import { makeIdentity, Opener, recipientOf, Sealer } from '../format/age-files.ts'
import { readBlob } from '../format/backup-reader.ts'
import { DirectoryTarget } from '../targets/directory.ts'
import { BlobLocks, StoredBytes } from './stored-bytes.ts'
import { Throttle } from './throttle.ts'

test('a base and an increment that store the same bytes at one time write them once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'stored-bytes-'))
  try {
    const secret = await makeIdentity()
    const recipients = [await recipientOf(secret)]
    const bytes = Buffer.alloc(1024 * 1024, 7)
    const target = new DirectoryTarget(directory)
    const locks = new BlobLocks()
    let opened = 0
    const content = {
      sha256: sha256Hex(bytes),
      size: bytes.length,
      open: async () => {
        opened += 1
        return bytes
      },
    }
    const writers = Array.from({ length: 4 }, () => {
      const sealer = new Sealer(recipients)
      const throttle = new Throttle(realSystem())
      const key = new Uint8Array(32)
      return new StoredBytes({ target, sealer, recipients, address: ADDRESS, key, throttle, locks })
    })
    const names = await Promise.all(writers.map((writer) => writer.store(content)))
    expect(new Set(names).size).toBe(1)
    expect(opened).toBe(1)
    const record = {
      t: 'blob',
      sha256: content.sha256,
      bytes: content.size,
      name: names[0]!,
    } as const
    const source = { target, opener: new Opener([secret]) }
    let read = 0
    for await (const chunk of readBlob(source, ADDRESS, record)) read += chunk.length
    expect(read).toBe(bytes.length)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
