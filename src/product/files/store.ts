/**
 * Stores a file: its bytes first, then the metadata, which alone makes it exist. The commit of the
 * metadata checks the rules of the bucket, whatever was admitted when the upload began.
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
import { requireAdmission } from './buckets.ts'
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
  /**
   * Throws where the object must not be stored in place of the file that its key names, null for
   * none. It runs in the transaction, perhaps several times.
   */
  readonly requireReplaceable?: ((replaced: FileDocument | null) => void) | undefined
  /** Runs in the same transaction, after `requireReplaceable`. */
  readonly inCommit?: ((transaction: Transaction) => MaybePromise<void>) | undefined
}

/**
 * Makes staged bytes durable and then the file that they belong to. Raises LIMIT_EXCEEDED and
 * FILE_NOT_FOUND where the bucket does not admit it, UNAVAILABLE where nothing was stored,
 * RESULT_UNCERTAIN, and what `requireReplaceable` throws. `record` is committed with the metadata.
 */
export async function storeFile(
  ports: FilePorts,
  staged: StagedBlob,
  object: NewObject,
  record: RecordOperation<FileDocument> | null = null,
): Promise<FileDocument> {
  const content = await staged.finish()
  return storeContent(ports, content, object, { makeDurable: () => staged.commit(), record })
}

export interface StoreOptions {
  /** Makes the bytes durable. */
  readonly makeDurable: () => Promise<void>
  readonly record?: RecordOperation<FileDocument> | null
}

/** Stores an object with the bytes of another file. Raises as `storeFile` does. */
export function storeContent(
  ports: FilePorts,
  { sha256, size }: Content,
  object: NewObject,
  { makeDurable, record = null }: StoreOptions,
): Promise<FileDocument> {
  requireAdmission(ports.buckets, object.bucket, BigInt(size))
  return ports.collection.hold(sha256, async () => {
    await makeDurable()
    return commitMetadata(ports, { ...object, sha256, size: BigInt(size) }, record)
  })
}

/** Replaces the file of the key in the same commit. */
async function commitMetadata(
  { documents, buckets, usage }: FilePorts,
  file: NewObject & { readonly sha256: string; readonly size: bigint },
  record: RecordOperation<FileDocument> | null,
): Promise<FileDocument> {
  let reserved: string | null = null
  try {
    return await documents.change(async (transaction) => {
      if (reserved !== null) usage.release(reserved)
      const bucket = requireAdmission(buckets, file.bucket, file.size)
      if (bucket.quotaBytes !== null) await usage.whenCounted()
      const { key } = file
      const replaced = key === null ? null : await findObject(transaction, bucket.name, key)
      file.requireReplaceable?.(replaced)
      await file.inCommit?.(transaction)
      if (replaced !== null) await deleteFile(transaction, replaced.fileId)
      const fileId = await insertFile(transaction, file)
      usage.reserve(bucket, fileId, file.size - (replaced?.size ?? 0n))
      reserved = fileId
      return (await readFile(transaction, fileId))!
    }, record)
  } finally {
    if (reserved !== null) usage.release(reserved)
  }
}
