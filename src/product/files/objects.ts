/**
 * Objects: files that a bucket and a key name. The management API and the S3-compatible API share
 * these rules; both store an object with `storeFile` and send its bytes with `openBytes`.
 */
import {
  deleteFile,
  type FileDocument,
  fileOf,
  findObject,
} from '../../engine/files/file-documents.ts'
import type { Transaction } from '../../engine/transactions/transaction.ts'
import { FILE_DOCUMENTS, keyPrefixEnd } from '../../value/files/files.ts'
import type { FilePorts } from './ports.ts'

/** An object is a file with a key. */
export interface ObjectDocument extends FileDocument {
  readonly key: string
}

export interface ListInput {
  readonly bucket: string
  readonly prefix: string
  /**
   * Keys with the delimiter after the prefix are grouped by the text up to it; null groups no keys.
   */
  readonly delimiter: string | null
  /** The first key that may be listed: `next` of the page before, or `keyAfter`; '' for all. */
  readonly from: string
  /** Objects and common prefixes together; at least 1. */
  readonly limit: number
}

export interface ObjectList {
  /** Sorted by the UTF-8 of their keys. */
  readonly objects: readonly ObjectDocument[]
  readonly prefixes: readonly string[]
  /** `from` of the next page; null for the last one. */
  readonly next: string | null
}

/**
 * Maximum documents of one read. It is lower with a delimiter: most of the documents may share a
 * common prefix, and the list skips the rest of the prefix.
 */
const READ_MAX = 1_000
const READ_DELIMITED_MAX = 16

/**
 * Returns the smallest text that sorts after the key. The NUL at its end keeps it from being a key.
 */
export function keyAfter(key: string): string {
  return `${key}\0`
}

/** Lists objects in several reads, each with a snapshot of its own. Raises UNAVAILABLE. */
export async function listObjects(
  ports: Pick<FilePorts, 'documents'>,
  input: ListInput,
): Promise<ObjectList> {
  const { prefix, delimiter, limit } = input
  const objects: ObjectDocument[] = []
  const prefixes: string[] = []
  let from: string | null = compareKeys(input.from, prefix) > 0 ? input.from : prefix
  while (from !== null) {
    const left = limit - objects.length - prefixes.length
    const { found, isLast } = await readFrom(ports, input, from, left + 1)
    const last = found.at(-1)
    from = last === undefined || isLast ? null : keyAfter(last.key)
    let skipped: string | null = null
    for (const object of found) {
      if (skipped !== null && object.key.startsWith(skipped)) continue
      if (objects.length + prefixes.length === limit) return { objects, prefixes, next: object.key }
      skipped = commonPrefix(object.key, prefix, delimiter)
      if (skipped === null) objects.push(object)
      else prefixes.push(skipped)
    }
    // Skips the rest of the prefix.
    if (from !== null && skipped !== null) from = keyPrefixEnd(skipped)
  }
  return { objects, prefixes, next: null }
}

/** Compares keys by their UTF-8, as lists are sorted. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Returns the object; null if the bucket has none with this key. Raises UNAVAILABLE. */
export function readObject(
  { documents }: Pick<FilePorts, 'documents'>,
  bucket: string,
  key: string,
): Promise<FileDocument | null> {
  return documents.read((transaction) => findObject(transaction, bucket, key))
}

/**
 * Deletes the object and returns it; null if there was none. Raises UNAVAILABLE, RESULT_UNCERTAIN,
 * and what `requireDeletable` throws.
 */
export function deleteObject(
  { documents }: Pick<FilePorts, 'documents'>,
  { bucket, key, requireDeletable }: DeleteInput,
): Promise<FileDocument | null> {
  return documents.change((transaction) => {
    return deleteIn(transaction, { bucket, key, requireDeletable })
  })
}

export interface DeleteInput {
  readonly bucket: string
  readonly key: string
  /**
   * Throws if the object (null for none) must not be deleted. It may run several times, in the
   * transaction.
   */
  readonly requireDeletable?: ((found: FileDocument | null) => void) | undefined
}

/** Deletes as `deleteObject` does, in the caller's transaction. */
export async function deleteIn(
  transaction: Transaction,
  { bucket, key, requireDeletable }: DeleteInput,
): Promise<FileDocument | null> {
  const found = await findObject(transaction, bucket, key)
  requireDeletable?.(found)
  if (found !== null) await deleteFile(transaction, found.fileId)
  return found
}

/** Returns the key up to the first delimiter after the prefix; null if no delimiter follows it. */
export function commonPrefix(key: string, prefix: string, delimiter: string | null): string | null {
  if (delimiter === null || delimiter === '') return null
  const at = key.indexOf(delimiter, prefix.length)
  return at === -1 ? null : key.slice(0, at + delimiter.length)
}

/** Reads objects of the prefix whose keys are at least `from`. */
async function readFrom(
  { documents }: Pick<FilePorts, 'documents'>,
  { bucket, prefix, delimiter }: ListInput,
  from: string,
  limit: number,
) {
  const end = keyPrefixEnd(prefix)
  if (end !== null && compareKeys(from, end) >= 0) return { found: [], isLast: true }
  const { documents: found, done } = await documents.read((transaction) =>
    transaction.range({
      table: FILE_DOCUMENTS,
      index: 'byKey',
      equal: [bucket],
      field: 'key',
      // The lower bound excludes files without a key, which sort before all texts.
      lower: { value: from, inclusive: true },
      ...(end !== null && { upper: { value: end, inclusive: false } }),
      order: 'asc',
      limit: Math.min(limit, delimiter === null ? READ_MAX : READ_DELIMITED_MAX),
    }),
  )
  return { found: found.map((each) => fileOf(each) as ObjectDocument), isLast: done }
}
