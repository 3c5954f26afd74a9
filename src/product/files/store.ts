/** Stores a file: its bytes first, then the metadata, which alone makes it exist. */
import {
  deleteFile,
  type FileDocument,
  findObject,
  insertFile,
  readFile,
} from '../../engine/files/file-documents.ts'
import type { StagedBlob } from '../../storage/blobs/blobs.ts'
import { requireAdmission } from './buckets.ts'
import type { FilePorts } from './ports.ts'

/** The object that staged bytes become. */
export interface NewObject {
  readonly bucket: string
  /** Replaces the file that the key names; null for a file without a key. */
  readonly key: string | null
  readonly contentType: string
  readonly uploadId: string | null
}

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
  const { buckets, collection } = ports
  const content = await staged.finish()
  const size = BigInt(content.size)
  requireAdmission(buckets, object.bucket, size)
  return collection.hold(content.sha256, async () => {
    await staged.commit()
    return commitMetadata(ports, { ...object, ...content, size })
  })
}

/** Replaces the file of the key in the same commit. */
function commitMetadata(
  { documents }: FilePorts,
  file: NewObject & { readonly sha256: string; readonly size: bigint },
): Promise<FileDocument> {
  return documents.change(async (transaction) => {
    const { bucket, key } = file
    const replaced = key === null ? null : await findObject(transaction, bucket, key)
    if (replaced !== null) await deleteFile(transaction, replaced.fileId)
    const fileId = await insertFile(transaction, file)
    return (await readFile(transaction, fileId))!
  })
}
