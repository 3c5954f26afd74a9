/** Ports of the rules of stored files. */
import type { SystemDocuments } from '../../engine/files/system-documents.ts'
import type { BlobStore } from '../../storage/blobs/blobs.ts'
import type { Keyring } from '../../storage/keyring.ts'
import type { System } from '../../system/system.ts'
import type { Buckets } from '../buckets/admission.ts'
import type { BucketUsage } from './bucket-usage.ts'
import type { FileCollection } from './collection.ts'

export interface FilePorts {
  readonly system: System
  /** The keys that grants are authenticated with. */
  readonly keyring: Keyring
  readonly buckets: Buckets
  readonly usage: BucketUsage
  /** Metadata and upload grants. */
  readonly documents: SystemDocuments
  readonly blobs: BlobStore
  /** IDs of upload grants that a PUT has begun to use, and that are not durable as used. */
  readonly uploadsBegun: Set<string>
  readonly collection: Pick<FileCollection, 'hold' | 'suspect'>
}
