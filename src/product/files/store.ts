/**
 * Stores a file: its bytes first, then the metadata, which alone makes it exist. The commit of the
 * metadata checks the rules of the bucket again, since they may have changed after the upload was
 * admitted.
 */
import {
  deleteFile,
  type FileDocument,
  findObject,
  insertFile,
  readFile,
} from '../../engine/files/file-documents.ts'
import type { RecordOperation } from '../../engine/files/system-documents.ts'
import type { Transaction } from '../../engine/transactions/transaction.ts'
import type { Content, StagedBlob } from '../../storage/blobs/blobs.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { type Bucket, requireAdmission } from '../buckets/admission.ts'
import type { Reservation } from './bucket-usage.ts'
import type { FilePorts } from './ports.ts'

/** The object that staged bytes become. */
export interface NewObject {
  readonly bucket: string
  /** Replaces the file that the key names; null for a file without a key. */
  readonly key: string | null
  readonly contentType: string
  readonly uploadId: string | null
  /** Entity tag, headers and parts for S3 clients (engine/files/file-documents.ts). */
  readonly etag?: string | undefined
  readonly headers?: ReadonlyMap<string, string> | undefined
  readonly partSizes?: string | undefined
  readonly multipartId?: string | undefined
  readonly checksums?: ReadonlyMap<string, string> | undefined
  /**
   * Throws if the object must not replace the file with its key (null for none). It may run several
   * times, in the transaction.
   */
  readonly requireReplaceable?: ((replaced: FileDocument | null) => void) | undefined
  /**
   * Runs in the same transaction, after `requireReplaceable`. Returns the bytes that the commit
   * frees in the bucket, beside those of the replaced file.
   */
  readonly inCommit?: ((transaction: Transaction) => MaybePromise<bigint>) | undefined
}

/** Options of the commit of a file. */
export interface CommitOptions {
  /** Committed with the metadata. */
  readonly record?: RecordOperation<FileDocument> | null
  /** The reservation of the transfer, or else one of the commit alone. The commit releases it. */
  readonly reservation?: Reservation | undefined
}

/**
 * Makes staged bytes durable, then commits the file that they belong to. Raises LIMIT_EXCEEDED and
 * FILE_NOT_FOUND if the bucket does not admit it, UNAVAILABLE if nothing was stored,
 * RESULT_UNCERTAIN, and what `requireReplaceable` throws.
 */
export async function storeFile(
  ports: FilePorts,
  staged: StagedBlob,
  object: NewObject,
  options: CommitOptions = {},
): Promise<FileDocument> {
  const content = await staged.finish()
  return storeContent(ports, content, object, { ...options, makeDurable: () => staged.commit() })
}

export interface StoreOptions extends CommitOptions {
  /** Makes the bytes durable. */
  readonly makeDurable: () => Promise<void>
}

/**
 * Creates a reservation for bytes that arrive, so that simultaneous transfers stay within the quota
 * of the bucket. A bucket without a quota needs neither the counts nor `replacedBytes`.
 */
export async function reserveIn(
  { usage }: Pick<FilePorts, 'usage'>,
  { quotaBytes }: Bucket,
  replacedBytes: () => Promise<bigint>,
): Promise<Reservation> {
  if (quotaBytes === null) return usage.reserve()
  await usage.whenCounted()
  return usage.reserve(await replacedBytes())
}

/** Stores an object with the bytes of another file. Raises as `storeFile` does. */
export function storeContent(
  ports: FilePorts,
  { sha256, size }: Content,
  object: NewObject,
  { makeDurable, ...options }: StoreOptions,
): Promise<FileDocument> {
  requireAdmission(ports.buckets, object.bucket, BigInt(size))
  return ports.collection.hold(sha256, async () => {
    await makeDurable()
    return commitMetadata(ports, { ...object, sha256, size: BigInt(size) }, options)
  })
}

/** Commits the metadata. The same commit deletes the replaced file. */
async function commitMetadata(
  { documents, buckets, usage }: FilePorts,
  file: NewObject & { readonly sha256: string; readonly size: bigint },
  { record = null, reservation = usage.reserve() }: CommitOptions,
): Promise<FileDocument> {
  try {
    return await documents.change(async (transaction) => {
      const bucket = requireAdmission(buckets, file.bucket, file.size)
      if (bucket.quotaBytes !== null) await usage.whenCounted()
      const { key } = file
      const replaced = key === null ? null : await findObject(transaction, bucket.name, key)
      file.requireReplaceable?.(replaced)
      const freed = (replaced?.size ?? 0n) + ((await file.inCommit?.(transaction)) ?? 0n)
      if (replaced !== null) await deleteFile(transaction, replaced.fileId)
      const fileId = await insertFile(transaction, file)
      reservation.commit(bucket, file.size - freed, fileId)
      return (await readFile(transaction, fileId))!
    }, record)
  } finally {
    reservation.release()
  }
}
