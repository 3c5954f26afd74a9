/** Stores a file: its bytes first, then the metadata, which alone makes it exist. */
import {
  deleteFile,
  type FileDocument,
  findObject,
  insertFile,
  readFile,
} from '../../engine/files/file-documents.ts'
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
  /** Entity tag and headers for S3 clients (engine/files/file-documents.ts). */
  readonly etag?: string | undefined
  readonly headers?: ReadonlyMap<string, string> | undefined
  /**
   * Runs in the transaction of the metadata, which may run more than once, with the file that the
   * key names before. What it throws leaves everything as it was.
   */
  readonly inCommit?: InCommit | undefined
}

export type InCommit = (
  transaction: Transaction,
  replaced: FileDocument | null,
) => MaybePromise<void>

/**
 * Makes staged bytes durable and then the file that they belong to. Raises LIMIT_EXCEEDED and
 * FILE_NOT_FOUND where the bucket does not admit it, UNAVAILABLE where nothing was stored, and
 * RESULT_UNCERTAIN.
 */
export async function storeFile(
  ports: FilePorts,
  staged: StagedBlob,
  object: NewObject,
): Promise<FileDocument> {
  const content = await staged.finish()
  return storeContent(ports, content, object, () => staged.commit())
}

/** Stores an object with the bytes of another file. Raises as `storeFile` does. */
export function storeContent(
  ports: FilePorts,
  { sha256, size }: Content,
  object: NewObject,
  makeDurable: () => Promise<void>,
): Promise<FileDocument> {
  requireAdmission(ports.buckets, object.bucket, BigInt(size))
  return ports.collection.hold(sha256, async () => {
    await makeDurable()
    return commitMetadata(ports, { ...object, sha256, size: BigInt(size) })
  })
}

/** Replaces the file of the key in the same commit. */
function commitMetadata(
  { documents }: FilePorts,
  file: NewObject & { readonly sha256: string; readonly size: bigint },
): Promise<FileDocument> {
  return documents.change(async (transaction) => {
    const { bucket, key, inCommit } = file
    const replaced = key === null ? null : await findObject(transaction, bucket, key)
    await inCommit?.(transaction, replaced)
    if (replaced !== null) await deleteFile(transaction, replaced.fileId)
    const fileId = await insertFile(transaction, file)
    return (await readFile(transaction, fileId))!
  })
}
