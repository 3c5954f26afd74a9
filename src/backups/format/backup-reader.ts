/**
 * Reads a backup and checks all of it: the chain, each digest, the counts and the Merkle tree. What
 * is wrong is BACKUP_CORRUPT, whose detail names the segment or the stored bytes.
 */
import { sha256Stream } from '../../system/digests.ts'
import type { BackupRecord, RecordOf, Sidecar } from '../../wire/files/backups.ts'
import type { BackupTarget } from '../targets/targets.ts'
import { AgeFailure, collect, type Opener } from './age-files.ts'
import { documentLeaf } from './backup-writer.ts'
import { blobPath, type HistoryAddress, type SelectedBackup, segmentPath } from './chain.ts'
import { MerkleTree } from './merkle-tree.ts'
import { corrupt, openSegment, SEGMENT_BYTES_MAX } from './segments.ts'

/** The encryption adds a header, and 16 bytes to each 64 KiB. */
const SEALED_BYTES_MAX = SEGMENT_BYTES_MAX + 1024 * 1024

export interface BackupSource {
  readonly target: BackupTarget
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
  const segment = `${segmentPath(sidecar, sidecar.number)}.age`
  const size = await target.sizeOf(segment)
  if (size === null) throw corrupt(segment, 'it is missing')
  // Before it is read: another length may be one that does not fit into memory.
  if (size > SEALED_BYTES_MAX) throw corrupt(segment, 'it is too long')
  if (size !== sidecar.bytes) throw corrupt(segment, 'it is not the file that its sidecar names')
  const file = await collect(target.read(segment))
  for (const record of await openSegment(opener, { name: segment, sidecar, file })) {
    yield { record, segment }
  }
}

/** Yields the records of the base of a backup in their order, and checks counts and Merkle tree. */
export async function* readBase(
  source: BackupSource,
  { base, segments }: SelectedBackup,
): AsyncGenerator<ReadRecord> {
  const counts: Record<string, number> = {}
  const documents = new MerkleTree()
  let end: RecordOf<'end'> | null = null
  let last = ''
  for (const sidecar of segments) {
    if (sidecar.backupId !== base.backupId) continue
    for await (const read of readSegment(source, sidecar)) {
      const { record, segment } = read
      last = segment
      if (end !== null) throw corrupt(segment, 'it has records after the end of the backup')
      if (record.t === 'end') {
        end = record
        continue
      }
      counts[record.t] = (counts[record.t] ?? 0) + 1
      if (record.t === 'document') documents.add(documentLeaf(record))
      yield read
    }
  }
  if (end === null) throw corrupt(last, 'the backup has no end')
  const types = new Set([...Object.keys(counts), ...Object.keys(end.counts)])
  for (const type of types) {
    if (counts[type] === end.counts[type]) continue
    throw corrupt(last, `${counts[type] ?? 0} records of ${type}, not ${end.counts[type] ?? 0}`)
  }
  if (documents.root() !== end.merkle) throw corrupt(last, 'the documents have another digest')
}

/**
 * Yields the bytes that a record names. Raises BACKUP_CORRUPT after the last of them where they
 * have another length or digest, so their reader keeps none of them before it has them all.
 */
export async function* readBlob(
  { target, opener }: BackupSource,
  address: HistoryAddress,
  { sha256, bytes, name }: RecordOf<'blob' | 'artifact'>,
): AsyncGenerator<Uint8Array> {
  const path = blobPath(address, name)
  const digest = sha256Stream()
  let length = 0
  try {
    for await (const chunk of opener.open(target.read(path))) {
      digest.update(chunk)
      length += chunk.length
      if (length > bytes) break
      yield chunk
    }
  } catch (error) {
    throw error instanceof AgeFailure ? corrupt(path, error.message, error) : error
  }
  if (length !== bytes || digest.digest().toString('hex') !== sha256) {
    throw corrupt(path, 'its content is not the one that was stored')
  }
}

export interface VerifiedBackup {
  readonly counts: Readonly<Record<string, number>>
  /** Plain bytes of the files and artifacts. */
  readonly blobBytes: number
}

/** Reads everything that a restore would read. Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function verifyBackup(
  source: BackupSource,
  backup: SelectedBackup,
  onProgress: (segment: string) => void = () => undefined,
): Promise<VerifiedBackup> {
  const counts: Record<string, number> = {}
  let blobBytes = 0
  let current = ''
  for await (const { record, segment } of readBase(source, backup)) {
    if (segment !== current) onProgress(segment)
    current = segment
    counts[record.t] = (counts[record.t] ?? 0) + 1
    if (record.t !== 'blob' && record.t !== 'artifact') continue
    for await (const chunk of readBlob(source, backup, record)) blobBytes += chunk.length
  }
  return { counts, blobBytes }
}
