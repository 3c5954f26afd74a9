/** Removes the oldest segments of a history, and then the blobs that no segment names. */

import { collect } from '../format/age-files.ts'
import { blobDirectory, directoryOf, type HistoryAddress, listBases } from '../format/chain.ts'
import type { BackupTarget } from '../targets/targets.ts'
import type { BlobNames } from './blob-names.ts'

export interface Retention {
  /** Each moment of this many days can be restored. */
  readonly days: number
  /** Bases that are kept however old they are, 1 or more. */
  readonly bases: number
}

export interface RetentionRun {
  readonly target: BackupTarget
  readonly address: HistoryAddress
  readonly retention: Retention
  readonly nowMicros: bigint
  /** The names of blobs that increments are about to name. */
  readonly names: BlobNames
  readonly signal: AbortSignal
}

const MICROS_PER_DAY = 86_400_000_000n
const THOUSAND = /^[0-9]{9}$/
const SEGMENT_FILE = /^([0-9]{12})\.(?:age|blobs|json)$/
const BLOB_FILE = /^([0-9a-f]{64})\.age$/
const SHARDS = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))
/** Names of blobs in memory at the same time. */
const NAMES_MAX = 100_000

/**
 * No base may be made meanwhile. Resolves early when the signal is aborted: the base before is
 * whole. Raises BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function removeOldSegments(run: RetentionRun): Promise<void> {
  try {
    await removeOld(run)
  } catch (error) {
    if (!run.signal.aborted) throw error
  }
}

async function removeOld(run: RetentionRun): Promise<void> {
  const first = await oldestKept(run)
  if (first === null || !(await removeBefore(run, first))) return
  run.names.hold()
  try {
    await removeUnnamedBlobs(run)
  } finally {
    run.names.release()
  }
}

/** Returns the number of the first segment to keep; null to keep all of them. */
async function oldestKept({ target, address, retention, nowMicros }: RetentionRun) {
  const after = nowMicros - BigInt(retention.days) * MICROS_PER_DAY
  let kept = 0
  let first: number | null = null
  for await (const base of listBases(target, address)) {
    first = base.first
    kept += 1
    // The moments since `after` are restored from the newest base before it.
    if (kept >= retention.bases && BigInt(base.atMicros) <= after) return first
  }
  return null
}

/** Removes the segments before one, the oldest first. Returns whether there were any. */
async function removeBefore(run: RetentionRun, first: number): Promise<boolean> {
  const { target, signal } = run
  let hasRemoved = false
  for await (const { directory, files } of segmentFiles(run)) {
    const old = files.filter(({ number }) => number < first)
    for (const { name } of old.sort(bySidecars)) {
      signal.throwIfAborted()
      await target.remove(`${directory}/${name}`)
      hasRemoved = true
    }
    if (old.length === files.length) await target.removeDirectory(directory)
    if (old.length < files.length) break
  }
  return hasRemoved
}

/** The sidecar of a segment is removed first: without it there is no segment. */
function bySidecars(a: SegmentFile, b: SegmentFile): number {
  return a.number - b.number || (a.name < b.name ? 1 : -1)
}

interface SegmentFile {
  readonly name: string
  readonly number: number
}

/** Yields the files of all segments by their directories, the oldest first. */
async function* segmentFiles({ target, address }: RetentionRun) {
  for (const thousand of await target.names(directoryOf(address))) {
    if (!THOUSAND.test(thousand)) continue
    const directory = `${directoryOf(address)}/${thousand}`
    const files = (await target.names(directory)).flatMap((name): SegmentFile[] => {
      const number = SEGMENT_FILE.exec(name)?.[1]
      return number === undefined ? [] : [{ name, number: Number(number) }]
    })
    yield { directory, files }
  }
}

async function removeUnnamedBlobs(run: RetentionRun): Promise<void> {
  let unnamed = new Map<string, string>()
  for (const digits of SHARDS) {
    const directory = blobDirectory(run.address, digits)
    for (const file of await run.target.names(directory)) {
      const name = BLOB_FILE.exec(file)?.[1]
      if (name !== undefined) unnamed.set(name, `${directory}/${file}`)
    }
    if (unnamed.size < NAMES_MAX) continue
    await removeUnnamed(run, unnamed)
    unnamed = new Map()
  }
  await removeUnnamed(run, unnamed)
}

/** Removes those of the blobs that no segment names. */
async function removeUnnamed(run: RetentionRun, blobs: Map<string, string>): Promise<void> {
  const { target, names, signal } = run
  for await (const { directory, files } of segmentFiles(run)) {
    if (blobs.size === 0) return
    for (const { name } of files) {
      if (!name.endsWith('.blobs')) continue
      signal.throwIfAborted()
      const text = Buffer.from(await collect(target.read(`${directory}/${name}`))).toString(
        'latin1',
      )
      for (const line of text.split('\n')) blobs.delete(line)
    }
  }
  for (const [name, path] of blobs) {
    signal.throwIfAborted()
    await names.remove(name, () => target.remove(path))
  }
}
