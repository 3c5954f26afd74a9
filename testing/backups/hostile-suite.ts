/** Restores a small backup after each alteration of one of its files: none may be accepted. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NEWEST } from '../../src/backups/restore/goals.ts'
import { restoreBackup } from '../../src/backups/restore/restore.ts'
import { absent } from '../../src/backups/targets/failures.ts'
import type { BackupTarget } from '../../src/backups/targets/targets.ts'
import type { Database } from '../../src/database/database.ts'
import { isFault } from '../../src/errors/fault.ts'
import { realSystem } from '../../src/system/system.ts'
import { documentId } from '../documents/store-fixtures.ts'
import { ADDRESS, type BackedUpServer, backedUpServer, write } from './backed-up-server.ts'

/** Files in memory. */
class MemoryTarget implements BackupTarget {
  readonly location = 'memory'
  readonly files: ReadonlyMap<string, Uint8Array>

  constructor(files: ReadonlyMap<string, Uint8Array>) {
    this.files = files
  }

  async names(directory: string): Promise<string[]> {
    const prefix = directory === '' ? '' : `${directory}/`
    const inside = [...this.files.keys()].filter((path) => path.startsWith(prefix))
    return [...new Set(inside.map((path) => path.slice(prefix.length).split('/')[0]!))].sort()
  }

  async sizeOf(name: string): Promise<number | null> {
    return this.files.get(name)?.length ?? null
  }

  async *read(name: string): AsyncGenerator<Uint8Array> {
    const bytes = this.files.get(name)
    if (bytes === undefined) throw absent(name)
    yield bytes
  }

  write(): never {
    throw new Error('a restore does not write into its target')
  }

  remove(): never {
    throw new Error('a restore does not remove from its target')
  }

  removeDirectory(): never {
    throw new Error('a restore does not remove from its target')
  }
}

/** A database without tables. A restore that asks for a connection is one that writes. */
const EMPTY = {
  rows: async () => [],
  connect: () => {
    throw new Error('the restore was not rejected')
  },
} as unknown as Database

/** `stride` is the distance of the bytes that are altered; 1 alters every byte. */
export function hostileSuite(stride: number): void {
  let server: BackedUpServer
  let files: Map<string, Uint8Array>
  let place: string

  beforeAll(async () => {
    server = await backedUpServer('sqlite')
    place = mkdtempSync(join(tmpdir(), 'hostile-'))
    await server.commit(1, write('notes', 1, '{"body":"one"}'))
    await server.base()
    const blob = await server.storeBlob(Buffer.from('bytes of a file'))
    await server.increment({ from: 1, to: 2 }, [
      blob,
      { t: 'commit', sequence: 2, atMicros: '5' },
      {
        t: 'document',
        id: documentId('notes', 1),
        createdAtMicros: '1',
        sequence: 2,
        text: '{"body":"two"}',
      },
    ])
    await server.increment({ kind: 'catchup', from: 2, to: 4 }, [
      { t: 'commit', sequence: 4, atMicros: '6' },
    ])
    files = await allFiles(server.parts.target)
  })
  afterAll(async () => {
    rmSync(place, { recursive: true })
    await server.dispose()
  })

  /** Returns the detail of the rejection. */
  async function rejection(altered: ReadonlyMap<string, Uint8Array>): Promise<string> {
    const root = join(place, 'root')
    try {
      await restoreBackup({
        source: { target: new MemoryTarget(altered), opener: server.source.opener },
        address: ADDRESS,
        goal: NEWEST,
        destination: { root, identity: EMPTY, documents: null, system: realSystem() },
        openBlobs: () => Promise.reject(new Error('the restore was not rejected')),
        revokesCredentials: false,
        restoresPeppers: false,
      })
    } catch (error) {
      if (!isFault(error, 'BACKUP_CORRUPT')) throw error
      expect(existsSync(root)).toBe(false)
      return error.detail!
    }
    return 'accepted'
  }

  /** Returns the path of a segment of a file, without its ending. */
  const segmentOf = (path: string) => path.replace(/\.(?:age|json|blobs)$/, '')

  const segments = () => [...files.keys()].filter((path) => path.endsWith('.json')).map(segmentOf)

  describe('an altered backup', () => {
    test('the unaltered backup is not rejected before its databases are written', async () => {
      await expect(rejection(files)).rejects.toThrow('the restore was not rejected')
    })

    test('an altered byte is found, and the file is named', { tags: ['slow'] }, async () => {
      const accepted: string[] = []
      for (const [path, bytes] of files) {
        // Sidecars are short, and each of their bytes has a meaning of its own.
        const step = path.endsWith('.age') ? stride : Math.ceil(stride / 8)
        for (let at = 0; at < bytes.length; at += step) {
          const altered = Uint8Array.from(bytes)
          altered[at]! ^= 1 << (at % 8)
          const detail = await rejection(new Map(files).set(path, altered))
          if (!detail.includes(neighbourhood(path))) accepted.push(`${path} ${at}: ${detail}`)
        }
      }
      expect(accepted).toEqual([])
    })

    test('a file that is shorter, longer, empty or missing is found', {
      tags: ['slow'],
    }, async () => {
      for (const [path, bytes] of files) {
        const forms = [bytes.subarray(1), bytes.subarray(0, -1), new Uint8Array()]
        for (const form of [...forms, Buffer.concat([bytes, Buffer.of(0)]), null]) {
          const altered = new Map(files)
          if (form === null) altered.delete(path)
          else altered.set(path, form)
          // Without its sidecar the last segment does not exist: an earlier state is restored.
          if (form === null && path === `${segments().at(-1)}.json`) continue
          expect(await rejection(altered), path).toContain(neighbourhood(path))
        }
      }
    })

    test('a segment that is removed with all of its files is found', async () => {
      for (const segment of segments().slice(0, -1)) {
        const altered = new Map([...files].filter(([path]) => segmentOf(path) !== segment))
        expect(await rejection(altered), segment).not.toBe('accepted')
      }
    })

    test('two segments that were swapped are found', async () => {
      const names = segments()
      for (const [i, one] of names.entries()) {
        for (const other of names.slice(i + 1)) {
          for (const endings of [['.age'], ['.json'], ['.age', '.json', '.blobs']]) {
            const detail = await rejection(swapped(files, one, other, endings))
            expect(detail).toMatch(/^env_/)
          }
        }
      }
    })

    test('two files that were swapped are found', async () => {
      const blobs = [...files.keys()].filter((path) => path.includes('/blobs/'))
      expect(blobs.length).toBeGreaterThan(0)
      const [blob] = blobs
      const age = `${segments()[0]}.age`
      const altered = new Map(files).set(blob!, files.get(age)!)
      expect(await rejection(altered)).toContain(blob)
    })
  })

  /** A sidecar that does not fit is found as itself, or where the next one continues another. */
  function neighbourhood(path: string): string {
    return path.endsWith('.age') || path.endsWith('.blobs') ? path : ADDRESS.historyId
  }
}

function swapped(
  files: ReadonlyMap<string, Uint8Array>,
  one: string,
  other: string,
  endings: readonly string[],
): Map<string, Uint8Array> {
  const altered = new Map(files)
  for (const ending of endings) {
    for (const [to, from] of [
      [one, other],
      [other, one],
    ]) {
      const bytes = files.get(`${from}${ending}`)
      if (bytes === undefined) altered.delete(`${to}${ending}`)
      else altered.set(`${to}${ending}`, bytes)
    }
  }
  return altered
}

async function allFiles(target: BackupTarget, directory = ''): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>()
  for (const name of await target.names(directory)) {
    const path = directory === '' ? name : `${directory}/${name}`
    if (/\.(?:age|json|blobs)$/.test(name)) {
      const parts = []
      for await (const part of target.read(path)) parts.push(part)
      files.set(path, Buffer.concat(parts))
    } else {
      for (const [inside, bytes] of await allFiles(target, path)) files.set(inside, bytes)
    }
  }
  return files
}
