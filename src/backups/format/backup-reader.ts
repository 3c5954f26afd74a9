/**
 * Reads a backup and checks all of it: the chain, each digest, the counts and the Merkle tree. What
 * is wrong is BACKUP_CORRUPT, whose detail names the segment or the stored bytes.
 */
import { sha256Hex, sha256Stream } from '../../system/digests.ts'
import type { BackupRecord, RecordOf, Sidecar } from '../../wire/files/backups.ts'
import type { BackupFiles } from '../targets/targets.ts'
import { AgeFailure, collect, type Opener } from './age-files.ts'
import { documentLeaf } from './backup-writer.ts'
import {
  blobPath,
  type HistoryAddress,
  joinIncrements,
  type SelectedBackup,
  segmentPath,
} from './chain.ts'
import { MerkleTree } from './merkle-tree.ts'
import { corrupt, formatBlobNames, openSegment, SEGMENT_BYTES_MAX } from './segments.ts'

/** The encryption adds a header, and 16 bytes to each 64 KiB. */
const SEALED_BYTES_MAX = SEGMENT_BYTES_MAX + 1024 * 1024

export interface BackupSource {
  readonly target: BackupFiles
  readonly opener: Opener
}

/** A record, and the name of its segment for messages. */
export interface ReadRecord {
  readonly record: BackupRecord
  readonly segment: string
}

/** Yields the records of a segment. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function* readSegment(
  { target, opener }: BackupSource,
  sidecar: Sidecar,
): AsyncGenerator<ReadRecord> {
  const path = segmentPath(sidecar, sidecar.number)
  const segment = `${path}.age`
  const size = await target.sizeOf(segment)
  if (size === null) throw corrupt(segment, 'it is missing')
  // Before it is read: another length may be one that does not fit into memory.
  if (size > SEALED_BYTES_MAX) throw corrupt(segment, 'it is too long')
  if (size !== sidecar.bytes) throw corrupt(segment, 'it is not the file that its sidecar names')
  const file = await collect(target.read(segment))
  const names: string[] = []
  for (const record of await openSegment(opener, { name: segment, sidecar, file })) {
    if (record.t === 'blob' || record.t === 'artifact') names.push(record.name)
    yield { record, segment }
  }
  const blobs = formatBlobNames(names)
  if ((blobs === null ? null : sha256Hex(blobs)) !== sidecar.blobs) {
    throw corrupt(segment, 'it names other blobs than its sidecar says')
  }
  if (blobs !== null) await checkNames(target, `${path}.blobs`, blobs)
}

async function checkNames(target: BackupFiles, path: string, expected: string): Promise<void> {
  const isEqual =
    (await target.sizeOf(path)) === expected.length &&
    Buffer.from(await collect(target.read(path))).toString('latin1') === expected
  if (!isEqual) throw corrupt(path, 'it has not the names of the blobs of the segment')
}

/**
 * Yields the records of the base of a backup in their order, and checks counts and Merkle tree. The
 * tree of a base `isVerified` was checked before: its segments have the digests of their sidecars.
 */
export async function* readBase(
  source: BackupSource,
  { base, segments }: SelectedBackup,
  { isVerified = false } = {},
): AsyncGenerator<ReadRecord> {
  const documents = new MerkleTree()
  const ending = new Ending()
  for (const sidecar of segments) {
    if (sidecar.backupId !== base.backupId) continue
    for await (const read of readSegment(source, sidecar)) {
      if (ending.take(read)) continue
      if (read.record.t === 'document' && !isVerified) documents.add(documentLeaf(read.record))
      yield read
    }
  }
  const { merkle, segment } = ending.check()
  if (!isVerified && documents.root() !== merkle)
    throw corrupt(segment, 'the documents have another digest')
}

/**
 * Yields the records of an increment or a catch-up in their order. Checks their counts, and that
 * the commits are those that its sidecar says. Raises BACKUP_CORRUPT and UNAVAILABLE.
 */
export async function* readIncrement(
  source: BackupSource,
  sidecar: Sidecar,
): AsyncGenerator<ReadRecord> {
  const ending = new Ending()
  const commits = new CommitCheck(sidecar)
  for await (const read of readSegment(source, sidecar)) {
    if (ending.take(read)) continue
    commits.take(read)
    yield read
  }
  const { merkle, segment } = ending.check()
  if (merkle !== null) throw corrupt(segment, 'an increment has no digest of all documents')
  commits.check(segment)
}

/** Checks the last record, which has the counts of all records before it. */
class Ending {
  readonly #counts: Record<string, number> = {}
  #end: RecordOf<'end'> | null = null
  #segment = ''

  /** Returns whether the record is the last one. */
  take({ record, segment }: ReadRecord): boolean {
    this.#segment = segment
    if (this.#end !== null) throw corrupt(segment, 'it has records after the end of the backup')
    if (record.t === 'end') this.#end = record
    else this.#counts[record.t] = (this.#counts[record.t] ?? 0) + 1
    return record.t === 'end'
  }

  check(): { readonly merkle: string | null; readonly segment: string } {
    const segment = this.#segment
    if (this.#end === null) throw corrupt(segment, 'the backup has no end')
    const { counts, merkle } = this.#end
    for (const type of new Set([...Object.keys(this.#counts), ...Object.keys(counts)])) {
      const [found = 0, expected = 0] = [this.#counts[type], counts[type]]
      if (found !== expected) {
        throw corrupt(segment, `${found} records of ${type}, not ${expected}`)
      }
    }
    return { merkle, segment }
  }
}

/** Checks that commits ascend to the end of the increment, and that each document has its own. */
class CommitCheck {
  readonly #sidecar: Sidecar
  #newest: number

  constructor(sidecar: Sidecar) {
    this.#sidecar = sidecar
    this.#newest = sidecar.fromSequence
  }

  take({ record, segment }: ReadRecord): void {
    if (record.t === 'commit') {
      if (record.sequence <= this.#newest) throw corrupt(segment, 'its commits do not ascend')
      this.#newest = record.sequence
    }
    if (record.t !== 'document') return
    const isCatchup = this.#sidecar.kind === 'catchup'
    const oldest = isCatchup ? this.#sidecar.fromSequence + 1 : this.#newest
    if (record.sequence < oldest || record.sequence > this.#newest) {
      throw corrupt(segment, `${record.id} does not belong to the commit before it`)
    }
  }

  check(segment: string): void {
    if (this.#newest === this.#sidecar.toSequence) return
    throw corrupt(segment, 'its commits do not end where its sidecar says')
  }
}

/**
 * Yields the bytes that a record names. Raises BACKUP_CORRUPT after the last of them where they
 * have another length or digest, so their reader keeps none of them before it has them all.
 */
export async function* readBlob(
  source: BackupSource,
  address: HistoryAddress,
  record: RecordOf<'blob' | 'artifact'>,
): AsyncGenerator<Uint8Array> {
  const digest = sha256Stream()
  let size = 0
  for await (const chunk of openBlob(source, address, record)) {
    digest.update(chunk)
    size += chunk.length
    yield chunk
  }
  checkBlob(address, record, { sha256: digest.digest().toString('hex'), size })
}

/**
 * Yields the bytes under the name of a record, one chunk more than it says at most. Raises
 * BACKUP_CORRUPT. The caller computes their digest and calls `checkBlob`.
 */
export async function* openBlob(
  { target, opener }: BackupSource,
  address: HistoryAddress,
  { bytes, name }: RecordOf<'blob' | 'artifact'>,
): AsyncGenerator<Uint8Array> {
  const path = blobPath(address, name)
  let length = 0
  try {
    for await (const chunk of opener.open(target.read(path))) {
      yield chunk
      length += chunk.length
      if (length > bytes) break
    }
  } catch (error) {
    throw error instanceof AgeFailure ? corrupt(path, error.message, error) : error
  }
}

/** Throws BACKUP_CORRUPT where bytes that were read are not those of the record. */
export function checkBlob(
  address: HistoryAddress,
  { sha256, bytes, name }: RecordOf<'blob' | 'artifact'>,
  found: { readonly sha256: string; readonly size: number },
): void {
  if (found.size === bytes && found.sha256 === sha256) return
  throw corrupt(blobPath(address, name), 'its content is not the one that was stored')
}

export interface VerifiedBackup {
  /** The records of the base, by their type. */
  readonly counts: Readonly<Record<string, number>>
  /** Plain bytes of the files and artifacts. */
  readonly blobBytes: number
  /** Increments and catch-ups that join up with the base. */
  readonly increments: number
  /** The newest sequence that can be restored. */
  readonly toSequence: number
}

/**
 * Reads everything that a restore of the newest state would read. Raises BACKUP_CORRUPT and
 * UNAVAILABLE.
 */
export async function verifyBackup(
  source: BackupSource,
  backup: SelectedBackup,
  onProgress: (segment: string) => void = () => undefined,
): Promise<VerifiedBackup> {
  const counts: Record<string, number> = {}
  let blobBytes = 0
  let current = ''
  const check = async ({ record, segment }: ReadRecord) => {
    if (segment !== current) onProgress(segment)
    current = segment
    if (record.t !== 'blob' && record.t !== 'artifact') return
    for await (const chunk of readBlob(source, backup, record)) blobBytes += chunk.length
  }
  for await (const read of readBase(source, backup)) {
    counts[read.record.t] = (counts[read.record.t] ?? 0) + 1
    await check(read)
  }
  const { increments, toSequence } = joinIncrements(backup)
  for (const sidecar of increments) {
    for await (const read of readIncrement(source, sidecar)) await check(read)
  }
  return { counts, blobBytes, increments: increments.length, toSequence }
}
