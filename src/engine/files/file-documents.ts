/** Metadata of files and upload grants as documents: how they are read, found and written. */
import type { StoredDocument } from '../../documents/store.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { FILE_DOCUMENTS, PART_DOCUMENTS, UPLOAD_DOCUMENTS } from '../../value/files/files.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../../value/values.ts'
import type { Transaction } from '../transactions/transaction.ts'

/** The fields of a file that its author sees. */
export interface FileFields {
  readonly bucket: string
  /** Null for a file that no object key names. */
  readonly key: string | null
  readonly contentType: string
  readonly size: bigint
  /** 64 lowercase hex characters. */
  readonly sha256: string
  /** The grant that it was uploaded with; null for any other file. */
  readonly uploadId: string | null
  /**
   * The entity tag for S3 clients, without quotes: the MD5 in hexadecimal, or that of the parts
   * with their number. Absent in files that were stored without one.
   */
  readonly etag?: string | undefined
  /** Headers that an S3 client stored with the file, by name in lower case. */
  readonly headers?: ReadonlyMap<string, string> | undefined
  /** The sizes of the parts of a multipart upload (value/files/part-sizes.ts). */
  readonly partSizes?: string | undefined
  /** The multipart upload that became the file; absent in others, and in copies. */
  readonly multipartId?: string | undefined
  /**
   * Checksums that an S3 client announced and that were verified: base64 by algorithm, as `crc32`.
   * A composite one, of the checksums of parts, has their number after a hyphen.
   */
  readonly checksums?: ReadonlyMap<string, string> | undefined
}

export interface FileDocument extends FileFields {
  readonly fileId: string
  readonly createdAtMicros: bigint
}

export interface FilePage {
  readonly files: readonly FileDocument[]
  /** The key to continue after; null for the last page. */
  readonly lastKey: string | null
}

/** The upload that a grant admits. */
export interface UploadTerms {
  readonly bucket: string
  readonly key: string | null
  readonly contentType: string
  readonly maximumBytes: bigint
  readonly releaseId: string
  readonly expiresAtMicros: bigint
}

/** A used grant, or an unused one of a release before 0.5.0, whose terms its token lacks. */
export interface UploadFields extends UploadTerms {
  /** 32 bytes: the keyed digest of the token. Empty for a used grant. */
  readonly digest: Uint8Array
  /** ID of the keyring's key that the digest was made with. Empty for a used grant. */
  readonly keyId: string
}

/** The fields by which a grant is used: no token has such a digest. */
const USED = { digest: new Uint8Array(0), keyId: '' }

type Fields = Readonly<Record<string, Value>>

/** Returns the file; null if there is none. `id` is a canonical ID of a file. */
export function readFile(transaction: Transaction, id: string): MaybePromise<FileDocument | null> {
  return andThen(transaction.get(id), (found) => (found === null ? null : fileOf(found)))
}

/** Returns the file that an object key names; null if there is none. */
export function findObject(
  transaction: Transaction,
  bucket: string,
  key: string,
): MaybePromise<FileDocument | null> {
  const found = transaction.range({
    table: FILE_DOCUMENTS,
    index: 'byKey',
    equal: [bucket, key],
    order: 'asc',
    limit: 1,
  })
  return andThen(found, ({ documents: [first] }) => (first === undefined ? null : fileOf(first)))
}

/** Returns whether any file, or part of one, has this content. */
export async function isContentReferenced(
  transaction: Transaction,
  sha256: string,
): Promise<boolean> {
  for (const table of [FILE_DOCUMENTS, PART_DOCUMENTS]) {
    const index = { table, index: 'byContent', equal: [sha256] }
    const { documents } = await transaction.range({ ...index, order: 'asc', limit: 1 })
    if (documents.length > 0) return true
  }
  return false
}

/** Returns a page of all files in the order of their creation. */
export function listFiles(
  transaction: Transaction,
  { afterKey, limit }: { readonly afterKey: string | null; readonly limit: number },
): MaybePromise<FilePage> {
  const found = transaction.range({
    table: FILE_DOCUMENTS,
    index: null,
    equal: [],
    order: 'asc',
    limit,
    afterKey: afterKey ?? undefined,
  })
  return andThen(found, ({ documents, done, lastKey }) => ({
    files: documents.map(fileOf),
    lastKey: done ? null : lastKey,
  }))
}

/** Inserts a file and returns its ID. */
export function insertFile(transaction: Transaction, file: FileFields): MaybePromise<string> {
  const { bucket, key, contentType, size, sha256, uploadId, headers } = file
  const upload = uploadId === null ? null : new TypedId(uploadId)
  const fields = { bucket, key, contentType, size, sha256, uploadId: upload }
  const { etag, partSizes, multipartId } = file
  const optional = { etag, partSizes, multipartId, headers, checksums: file.checksums }
  return transaction.insert(FILE_DOCUMENTS, storedJson({ ...fields, ...withoutEmpty(optional) }))
}

export function deleteFile(transaction: Transaction, id: string): MaybePromise<void> {
  return transaction.delete(id)
}

/** Returns the fields that have a value, and the maps that have an entry. */
export function withoutEmpty(
  fields: Readonly<Record<string, Value | ReadonlyMap<string, string> | undefined>>,
): Fields {
  const isPresent = ([, value]: readonly [string, unknown]) =>
    value !== undefined && !(value instanceof Map && value.size === 0)
  return Object.fromEntries(Object.entries(fields).filter(isPresent)) as Fields
}

/** Inserts a used grant. `id` is a canonical ID that no document has. */
export function insertUsedUpload(
  transaction: Transaction,
  id: string,
  { bucket, key, contentType, maximumBytes, releaseId, expiresAtMicros }: UploadTerms,
  createdAtMicros: bigint,
): MaybePromise<void> {
  const expiresAt = new Timestamp(expiresAtMicros)
  const terms = { bucket, key, contentType, maximumBytes, releaseId, expiresAt }
  const fields = new Map<string, Value>(Object.entries({ ...USED, ...terms }))
  return transaction.insertAs(id, { createdAtMicros, fields })
}

/** Marks a stored grant as used. */
export function patchUsedUpload(transaction: Transaction, id: string): MaybePromise<void> {
  return transaction.patch(id, storedJson(USED), [])
}

export function isUsedUpload({ keyId }: UploadFields): boolean {
  return keyId === USED.keyId
}

/** Returns the stored grant; null if there is none. `id` is a canonical ID. */
export function readUpload(
  transaction: Transaction,
  id: string,
): MaybePromise<UploadFields | null> {
  return andThen(transaction.get(id), (found) => (found === null ? null : uploadOf(found)))
}

/** Deletes grants that expired before this time, at most `limit`; returns their number. */
export async function deleteExpiredUploads(
  transaction: Transaction,
  beforeMicros: bigint,
  limit: number,
): Promise<number> {
  const { documents } = await transaction.range({
    table: UPLOAD_DOCUMENTS,
    index: 'byExpiry',
    equal: [],
    field: 'expiresAt',
    upper: { value: { $t: String(beforeMicros) }, inclusive: false },
    order: 'asc',
    limit,
  })
  for (const { id } of documents) await transaction.delete(id)
  return documents.length
}

/** Reads the metadata of a stored document. */
export function fileOf({ id, createdAtMicros, text }: StoredDocument): FileDocument {
  return { fileId: id, createdAtMicros, ...fileFields(decodeStored(text) as ValueObject) }
}

/** Reads the metadata of decoded fields. */
export function fileFields(fields: ValueObject): FileFields {
  const uploadId = fields.get('uploadId') as TypedId | null
  return {
    bucket: fields.get('bucket') as string,
    key: fields.get('key') as string | null,
    contentType: fields.get('contentType') as string,
    size: fields.get('size') as bigint,
    sha256: fields.get('sha256') as string,
    uploadId: uploadId === null ? null : uploadId.id,
    etag: fields.get('etag') as string | undefined,
    headers: fields.get('headers') as ReadonlyMap<string, string> | undefined,
    partSizes: fields.get('partSizes') as string | undefined,
    multipartId: fields.get('multipartId') as string | undefined,
    checksums: fields.get('checksums') as ReadonlyMap<string, string> | undefined,
  }
}

function uploadOf({ text }: StoredDocument): UploadFields {
  const fields = decodeStored(text) as ValueObject
  return {
    digest: fields.get('digest') as Uint8Array,
    keyId: fields.get('keyId') as string,
    bucket: fields.get('bucket') as string,
    key: fields.get('key') as string | null,
    contentType: fields.get('contentType') as string,
    maximumBytes: fields.get('maximumBytes') as bigint,
    releaseId: fields.get('releaseId') as string,
    expiresAtMicros: (fields.get('expiresAt') as Timestamp).micros,
  }
}

/** Converts fields as a transaction takes them from a runner. */
export function storedJson(fields: Fields): unknown {
  return JSON.parse(encodeStored(new Map(Object.entries(fields))))
}
