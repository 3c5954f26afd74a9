/** Multipart uploads of S3 clients and their parts as documents. */
import type { StoredDocument } from '../../documents/store.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { keyPrefixEnd, MULTIPART_DOCUMENTS, PART_DOCUMENTS } from '../../value/files/files.ts'
import { tableOfId } from '../../value/ids.ts'
import { decodeStored } from '../../value/stored.ts'
import { TypedId, type ValueObject } from '../../value/values.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { storedJson, withoutEmpty } from './file-documents.ts'

export interface MultipartFields {
  readonly bucket: string
  readonly key: string
  readonly contentType: string
  readonly headers: ReadonlyMap<string, string>
  /** Size of all parts. */
  readonly bytes: bigint
  /** False once it was completed or aborted; its parts are then removed. */
  readonly isOpen: boolean
  /** The algorithm of the checksum that the object gets; absent for none. */
  readonly checksum?: string | undefined
  /** True if that is the checksum of the checksums of the parts. */
  readonly isComposite?: boolean | undefined
}

export interface MultipartDocument extends MultipartFields {
  readonly multipartId: string
  readonly createdAtMicros: bigint
}

export interface PartFields {
  readonly multipartId: string
  /** The number of the part, counted from 1. */
  readonly number: number
  readonly size: number
  /** 64 lowercase hex characters. */
  readonly sha256: string
  /** The MD5 in hexadecimal. */
  readonly etag: string
  /** Verified checksums, as those of a file. */
  readonly checksums?: ReadonlyMap<string, string> | undefined
}

export interface PartDocument extends PartFields {
  readonly partId: string
  readonly createdAtMicros: bigint
}

export interface PartPage {
  readonly parts: readonly PartDocument[]
  /** The key to continue after; null for the last page. */
  readonly lastKey: string | null
}

export interface MultipartPage {
  readonly uploads: readonly MultipartDocument[]
  /** The key to continue after; null for the last page. */
  readonly lastKey: string | null
}

/** Returns whether the text is a canonical ID of a multipart upload. */
export function isMultipartId(text: string): boolean {
  return tableOfId(text) === MULTIPART_DOCUMENTS
}

/** Inserts an upload and returns its ID. */
export function insertMultipart(
  transaction: Transaction,
  upload: MultipartFields,
): MaybePromise<string> {
  const { checksum, isComposite, ...fields } = upload
  const declared = withoutEmpty({ checksum, isComposite })
  return transaction.insert(MULTIPART_DOCUMENTS, storedJson({ ...fields, ...declared }))
}

/** Returns the upload, open or not; null if there is none. `id` is a canonical ID. */
export function readMultipart(
  transaction: Transaction,
  id: string,
): MaybePromise<MultipartDocument | null> {
  return andThen(transaction.get(id), (found) => (found === null ? null : multipartOf(found)))
}

export function patchMultipart(
  transaction: Transaction,
  id: string,
  fields: Partial<Pick<MultipartFields, 'bytes' | 'isOpen'>>,
): MaybePromise<void> {
  return transaction.patch(id, storedJson(fields), [])
}

/** Returns uploads of a bucket whose key has the prefix, by key and then by age, open or not. */
export function rangeMultiparts(
  transaction: Transaction,
  {
    bucket,
    prefix,
    limit,
  }: { readonly bucket: string; readonly prefix: string; readonly limit: number },
): MaybePromise<readonly MultipartDocument[]> {
  const end = keyPrefixEnd(prefix)
  const found = transaction.range({
    table: MULTIPART_DOCUMENTS,
    index: 'byKey',
    equal: [bucket],
    field: 'key',
    lower: { value: prefix, inclusive: true },
    upper: end === null ? undefined : { value: end, inclusive: false },
    order: 'asc',
    limit,
  })
  return andThen(found, ({ documents }) => documents.map(multipartOf))
}

/** Returns a page of the uploads of all buckets, the oldest first. */
export function listMultiparts(
  transaction: Transaction,
  { afterKey, limit }: { readonly afterKey: string | null; readonly limit: number },
): MaybePromise<MultipartPage> {
  const found = transaction.range(creationOrder(MULTIPART_DOCUMENTS, afterKey, limit))
  return andThen(found, ({ documents, done, lastKey }) => ({
    uploads: documents.map(multipartOf),
    lastKey: done ? null : lastKey,
  }))
}

export function deleteMultipart(transaction: Transaction, id: string): MaybePromise<void> {
  return transaction.delete(id)
}

/** Inserts a part and returns its ID. */
export function insertPart(transaction: Transaction, part: PartFields): MaybePromise<string> {
  const { multipartId, number, size, sha256, etag, checksums } = part
  const numbers = { number: BigInt(number), size: BigInt(size) }
  const upload = new TypedId(multipartId)
  const fields = { upload, ...numbers, sha256, etag, ...withoutEmpty({ checksums }) }
  return transaction.insert(PART_DOCUMENTS, storedJson(fields))
}

/** Returns the parts of an upload with a number over `after`, in the order of their numbers. */
export function rangeParts(
  transaction: Transaction,
  {
    multipartId,
    after,
    limit,
  }: { readonly multipartId: string; readonly after: number; readonly limit: number },
): MaybePromise<readonly PartDocument[]> {
  const found = transaction.range({
    table: PART_DOCUMENTS,
    index: 'byNumber',
    equal: [{ $d: multipartId }],
    field: 'number',
    lower: { value: { $i: String(after) }, inclusive: false },
    order: 'asc',
    limit,
  })
  return andThen(found, ({ documents }) => documents.map(partOf))
}

/** Returns the part with this number; null if there is none. */
export function findPart(
  transaction: Transaction,
  multipartId: string,
  number: number,
): MaybePromise<PartDocument | null> {
  const found = rangeParts(transaction, { multipartId, after: number - 1, limit: 1 })
  return andThen(found, ([part]) => (part?.number === number ? part : null))
}

/** Returns a page of the parts of all uploads. */
export function listParts(
  transaction: Transaction,
  { afterKey, limit }: { readonly afterKey: string | null; readonly limit: number },
): MaybePromise<PartPage> {
  const found = transaction.range(creationOrder(PART_DOCUMENTS, afterKey, limit))
  return andThen(found, ({ documents, done, lastKey }) => ({
    parts: documents.map(partOf),
    lastKey: done ? null : lastKey,
  }))
}

export function deletePart(transaction: Transaction, id: string): MaybePromise<void> {
  return transaction.delete(id)
}

function creationOrder(table: string, afterKey: string | null, limit: number) {
  const order = 'asc' as const
  return { table, index: null, equal: [], order, limit, afterKey: afterKey ?? undefined }
}

function multipartOf({ id, createdAtMicros, text }: StoredDocument): MultipartDocument {
  const fields = decodeStored(text) as ValueObject
  return { multipartId: id, createdAtMicros, ...multipartFields(fields) }
}

/** Reads the upload of decoded fields. */
export function multipartFields(fields: ValueObject): MultipartFields {
  return {
    bucket: fields.get('bucket') as string,
    key: fields.get('key') as string,
    contentType: fields.get('contentType') as string,
    headers: fields.get('headers') as ReadonlyMap<string, string>,
    bytes: fields.get('bytes') as bigint,
    isOpen: fields.get('isOpen') as boolean,
    checksum: fields.get('checksum') as string | undefined,
    isComposite: fields.get('isComposite') as boolean | undefined,
  }
}

function partOf({ id, createdAtMicros, text }: StoredDocument): PartDocument {
  const fields = decodeStored(text) as ValueObject
  return {
    partId: id,
    createdAtMicros,
    multipartId: (fields.get('upload') as TypedId).id,
    number: Number(fields.get('number') as bigint),
    size: Number(fields.get('size') as bigint),
    sha256: fields.get('sha256') as string,
    etag: fields.get('etag') as string,
    checksums: fields.get('checksums') as ReadonlyMap<string, string> | undefined,
  }
}
