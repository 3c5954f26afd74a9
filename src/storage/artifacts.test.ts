import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sha256Hex } from '../system/digests.ts'
import { ArtifactStore } from './artifacts.ts'
import { type Files, realFiles } from './files.ts'

const BYTES = new TextEncoder().encode('the artifact')
const DIGEST = `sha256:${sha256Hex(BYTES)}`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'artifacts-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function pathOf(digest: string): string {
  return join(directory, 'sha256', digest.slice(7, 9), digest.slice(9))
}

async function openStore(files?: Files): Promise<ArtifactStore> {
  const store = new ArtifactStore(directory, files)
  await store.open()
  return store
}

class Crash extends Error {}

/** File operations that all fail from the nth one on, like those of a killed process. */
function dyingFiles(deathAt: number): { files: Files; operations: () => string[] } {
  const operations: string[] = []
  const step = (name: string) => {
    if (operations.length >= deathAt) throw new Crash()
    operations.push(name)
  }
  const guarded = <T extends object>(target: T, prefix: string): T =>
    new Proxy(target, {
      get(object, name) {
        const value = Reflect.get(object, name) as unknown
        if (typeof value !== 'function') return value
        return async (...parameters: unknown[]) => {
          // The kernel closes the descriptors of a killed process.
          if (name !== 'close') step(`${prefix}${String(name)}`)
          if (name === 'write') await tearWrite(object as FileHandle, parameters[0], step)
          const result: unknown = await Reflect.apply(value, object, parameters)
          return name === 'open' ? guarded(result as object, 'handle.') : result
        }
      },
    })
  return { files: guarded(realFiles, ''), operations: () => operations }
}

/** Writes a part of the bytes before the step at which the process may be killed. */
async function tearWrite(handle: FileHandle, bytes: unknown, step: (name: string) => void) {
  await handle.write(bytes as Uint8Array, 0, 5, 0)
  step('handle.torn')
}

describe('artifacts', () => {
  test('artifacts are verified by their digest when they are read', async () => {
    const store = await openStore()
    await store.put(DIGEST, BYTES)
    expect(new Uint8Array(await store.get(DIGEST, BYTES.length))).toEqual(BYTES)
    await store.put(DIGEST, BYTES)
    expect(readdirSync(join(directory, 'temporary'))).toEqual([])
  })

  test.each<[string, (path: string) => void]>([
    ['altered', (path) => writeFileSync(path, 'the artifacT')],
    ['cut', (path) => writeFileSync(path, 'the artif')],
    ['continued', (path) => writeFileSync(path, 'the artifact.')],
    ['missing', (path) => rmSync(path)],
    [
      'replaced by a link',
      (path) => {
        rmSync(path)
        writeFileSync(join(directory, 'elsewhere'), BYTES)
        symlinkSync(join(directory, 'elsewhere'), path)
      },
    ],
  ])('artifacts %s on disk are corrupt until they are written again', async (_, damage) => {
    const store = await openStore()
    await store.put(DIGEST, BYTES)
    damage(pathOf(DIGEST))
    await expect(store.get(DIGEST, BYTES.length)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    await store.put(DIGEST, BYTES)
    expect(new Uint8Array(await store.get(DIGEST, BYTES.length))).toEqual(BYTES)
  })

  test.each(['sha256:../../x', 'md5:00', `sha256:${'A'.repeat(64)}`, ''])(
    'artifacts cannot be stored or read under %j, which is not a digest',
    async (digest) => {
      const store = await openStore()
      await expect(store.put(digest, BYTES)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
      await expect(store.get(digest, 1)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    },
  )

  test('artifacts are complete or absent wherever the writer is killed', async () => {
    await openStore()
    const { files, operations } = dyingFiles(Number.POSITIVE_INFINITY)
    await new ArtifactStore(directory, files).put(DIGEST, BYTES)
    const steps = operations().length
    expect(operations()).toContain('handle.sync')
    // The content is made durable before the rename, and the name after it.
    expect(operations().indexOf('handle.sync')).toBeLessThan(operations().indexOf('rename'))
    expect(operations().lastIndexOf('handle.sync')).toBeGreaterThan(operations().indexOf('rename'))
    for (let deathAt = 0; deathAt < steps; deathAt++) {
      rmSync(pathOf(DIGEST), { force: true })
      const dying = new ArtifactStore(directory, dyingFiles(deathAt).files)
      await expect(dying.put(DIGEST, BYTES), `step ${deathAt}`).rejects.toBeInstanceOf(Crash)
      if (readdirSync(join(directory, 'sha256')).length > 0) {
        const names = readdirSync(join(directory, 'sha256', DIGEST.slice(7, 9)))
        for (const name of names) {
          const found = readFileSync(join(directory, 'sha256', DIGEST.slice(7, 9), name))
          expect(new Uint8Array(found), `step ${deathAt}`).toEqual(BYTES)
        }
      }
      const store = await openStore()
      expect(readdirSync(join(directory, 'temporary'))).toEqual([])
      await store.put(DIGEST, BYTES)
      expect(new Uint8Array(await store.get(DIGEST, BYTES.length))).toEqual(BYTES)
    }
  })

  test('artifacts are unavailable, not damaged, on a full disk', async () => {
    await openStore()
    const files: Files = {
      ...realFiles,
      rename: async () => {
        throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      },
    }
    const put = new ArtifactStore(directory, files).put(DIGEST, BYTES)
    await expect(put).rejects.toMatchObject({ code: 'PRODUCT_UNAVAILABLE' })
  })
})
