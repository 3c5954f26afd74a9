/** The writes of a transaction as the store takes them, with the index keys that they change. */
import { encodeTrailer } from '../../documents/key-encoding.ts'
import { indexKeyOf } from '../../documents/keys.ts'
import type {
  DocumentWrite,
  EntryWrite,
  PhysicalIndex,
  StoredDocument,
} from '../../documents/store.ts'
import { FILE_DOCUMENTS, MULTIPART_DOCUMENTS, PART_DOCUMENTS } from '../../value/files/files.ts'
import { SCHEDULED_DOCUMENTS } from '../../value/scheduling/scheduled-work.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CommitWrites } from './read-set.ts'

/** A write as its transaction buffers it until the commit. */
export interface BufferedWrite {
  readonly id: string
  readonly table: string
  readonly createdAtMicros: bigint
  /** Fields at the snapshot; null for a new document. */
  readonly before: ValueObject | null
  /** UTF-16 units of its text at the snapshot; 0 for a new document. */
  readonly beforeUnits: number
  /** Fields after the write; null for a deletion. */
  readonly after: ValueObject | null
  /**
   * The document as this transaction reads it. The sequence of its commit is not assigned yet, so
   * `_revision` is that of the version at the snapshot, and 0 for a new document.
   */
  readonly document: StoredDocument
}

type SystemChanges = Pick<CommitWrites, 'files' | 'scheduled'>
/** Tables whose documents have, or count, bytes of files. */
const FILE_TABLES: readonly string[] = [FILE_DOCUMENTS, MULTIPART_DOCUMENTS, PART_DOCUMENTS]
const NO_CHANGES: SystemChanges = {}

/** Returns the changes of documents of the server, which few commits have. */
export function systemChanges(writes: readonly BufferedWrite[]): SystemChanges {
  if (!writes.some((write) => isFileWrite(write) || isScheduledWrite(write))) return NO_CHANGES
  const files = writes.filter(isFileWrite)
  const works = writes.filter(isScheduledWrite)
  const scheduled = works.map(({ id, before, after }) => ({ scheduledId: id, before, after }))
  const changed = files.map(({ table, id, createdAtMicros, before, after }) => {
    return { table, id, createdAtMicros, before, after }
  })
  return {
    ...(files.length > 0 && { files: changed }),
    ...(scheduled.length > 0 && { scheduled }),
  }
}

/** Number of pieces of scheduled work that the writes insert. */
export function countSchedules(writes: readonly BufferedWrite[]): number {
  return writes.filter((write) => isScheduledWrite(write) && write.before === null).length
}

function isFileWrite({ table }: BufferedWrite): boolean {
  return FILE_TABLES.includes(table)
}

function isScheduledWrite({ table }: BufferedWrite): boolean {
  return table === SCHEDULED_DOCUMENTS
}

/**
 * Returns whether the fields of the index are unchanged, as they are for most writes and indexes:
 * then one key is encoded and not two. False does not mean that the keys differ.
 */
function hasSameKey({ fields }: PhysicalIndex, { before, after }: BufferedWrite): boolean {
  if (before === null || after === null) return false
  return fields.every((field) => before.get(field) === after.get(field))
}

/**
 * Returns the write of one document and its index entries. Adds to `keysByIndex` every key at which
 * a range read sees this document change.
 */
export function documentWrite(
  write: BufferedWrite,
  indexes: readonly PhysicalIndex[],
  keysByIndex: Map<number, string[]>,
): DocumentWrite {
  const { id, createdAtMicros, before: old, after: fields } = write
  const entries: EntryWrite[] = []
  const trailer = encodeTrailer(write)
  for (const index of indexes) {
    if (index.table !== write.table) continue
    const before = old === null ? null : indexKeyOf(index, old, trailer)
    const isSame = hasSameKey(index, write)
    const after = isSame || fields === null ? null : indexKeyOf(index, fields, trailer)
    const isMoved = !isSame && before !== after
    if (isMoved && before !== null) entries.push({ index: index.id, key: before, live: false })
    if (isMoved && after !== null) entries.push({ index: index.id, key: after, live: true })
    let keys = keysByIndex.get(index.id)
    if (keys === undefined) {
      keys = []
      keysByIndex.set(index.id, keys)
    }
    if (before !== null) keys.push(before)
    if (isMoved && after !== null) keys.push(after)
  }
  return { id, createdAtMicros, text: fields === null ? null : write.document.text, entries }
}
