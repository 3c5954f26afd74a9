/** The writes of a transaction as the store takes them, with the index keys that they change. */
import { encodeTrailer } from '../../documents/key-encoding.ts'
import { indexKeyOf } from '../../documents/keys.ts'
import type { DocumentWrite, EntryWrite, PhysicalIndex } from '../../documents/store.ts'
import { FILE_DOCUMENTS } from '../../value/files/files.ts'
import type { BufferedWrite } from '../transactions/overlay.ts'
import type { CommitWrites } from './read-set.ts'

const NO_FILES = {}

/** Returns the changes of metadata of files, which few commits have. */
export function fileChanges(writes: readonly BufferedWrite[]): Pick<CommitWrites, 'files'> {
  if (!writes.some(isFileWrite)) return NO_FILES
  const files = writes.filter(isFileWrite)
  return { files: files.map(({ id, before, after }) => ({ fileId: id, before, after })) }
}

function isFileWrite({ table }: BufferedWrite): boolean {
  return table === FILE_DOCUMENTS
}

/**
 * Whether the fields of the index are unchanged, which most writes leave so for most indexes: then
 * one key is encoded and not two. False does not mean that the keys differ.
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
