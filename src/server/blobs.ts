/** Where the bytes of stored files are: in the Product root, or in an S3-compatible store. */
import { join } from 'node:path'
import type { StorageSettings } from '../settings/storage.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import { FileBlobs } from '../storage/blobs/file-blobs.ts'
import { FILES_DIRECTORY } from '../storage/root.ts'

/** Raises UNAVAILABLE and PRODUCT_CORRUPT. `storage` is null for the defaults. */
export function openBlobs(rootPath: string, storage: StorageSettings | null): Promise<BlobStore> {
  const { freeFloorBytes } = storage ?? { freeFloorBytes: 0 }
  return FileBlobs.open({ directory: join(rootPath, FILES_DIRECTORY), freeFloorBytes })
}
