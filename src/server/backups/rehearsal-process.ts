/**
 * The process that rehearses a restore: restores the newest state of a backup into a temporary
 * directory, compares it, and prints how that ended. It runs at the lowest priority, and ends when
 * the server that started it does.
 */
import { statfsSync } from 'node:fs'
import { setPriority } from 'node:os'
import { dirname } from 'node:path'
import { Opener } from '../../backups/format/age-files.ts'
import { NEWEST } from '../../backups/restore/goals.ts'
import { restoreBackup } from '../../backups/restore/restore.ts'
import { DirectoryTarget } from '../../backups/targets/directory.ts'
import { S3Target } from '../../backups/targets/s3.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { realSystem, type System } from '../../system/system.ts'
import type { RehearsalReply, RehearsalRequest } from './rehearsal-request.ts'

const LOWEST_PRIORITY = 19
/** Time between two looks at memory and space. */
const LOOK_MILLIS = 500
/**
 * Resident memory above which it gives up, after a collection of garbage.
 * @limit Backups: memory of the process of a rehearsal
 */
export const REHEARSAL_MEMORY_BYTES = 512 * 1024 * 1024

export async function runRehearsal(
  input: ReadableStream<Uint8Array>,
  print: (line: string) => void,
): Promise<void> {
  setPriority(LOWEST_PRIORITY)
  const reader = input.getReader()
  const request = JSON.parse(await firstLine(reader)) as RehearsalRequest
  // The pipe ends with the server, however that ends.
  void reader.read().then(
    () => process.exit(1),
    () => process.exit(1),
  )
  print(`${JSON.stringify(await rehearse(request))}\n`)
}

async function rehearse(request: RehearsalRequest): Promise<RehearsalReply> {
  const { target, address, identities, directory } = request
  const system = realSystem()
  try {
    const { sequence, documents, merkle } = await restoreBackup({
      source: {
        target:
          target.kind === 'directory' ? new DirectoryTarget(target.path) : new S3Target(target),
        opener: new Opener(identities),
      },
      address,
      goal: NEWEST,
      destination: { root: directory, identity: null, documents: null, system },
      // Their bytes are verified, and would take the space of all files again.
      openBlobs: null,
      revokesCredentials: true,
      restoresPeppers: false,
      onProgress: watchedBounds(request, system),
    })
    return { rehearsed: { sequence, documents, merkle } }
  } catch (error) {
    if (!isFault(error)) return { code: 'INTERNAL', detail: String(error) }
    return { code: error.code, detail: error.detail ?? null }
  }
}

/** Throws UNAVAILABLE where the rehearsal takes more memory or space than it may. */
function watchedBounds(
  { directory, freeFloorBytes }: RehearsalRequest,
  system: Pick<System, 'monotonicMillis'>,
): () => void {
  let looked = Number.NEGATIVE_INFINITY
  return () => {
    const now = system.monotonicMillis()
    if (now - looked < LOOK_MILLIS) return
    looked = now
    const { bavail, bsize } = statfsSync(dirname(directory))
    if (bavail * bsize < freeFloorBytes) throw exceeded('the disk of the Product root is too full')
    if (process.memoryUsage.rss() <= REHEARSAL_MEMORY_BYTES) return
    Bun.gc(true)
    if (process.memoryUsage.rss() > REHEARSAL_MEMORY_BYTES) {
      throw exceeded('the rehearsal takes more memory than it may')
    }
  }
}

function exceeded(detail: string): Fault {
  return new Fault('UNAVAILABLE', { detail })
}

async function firstLine(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('\n')) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  return text.slice(0, text.indexOf('\n'))
}
