/**
 * The buckets of the control database. Each look-up reads it, so that a change is effective at
 * once.
 */

import { findBucketByName, insertBucket } from '../../storage/control/buckets.ts'
import type { ControlDatabase, ControlTx } from '../../storage/control/database.ts'
import { DEFAULT_BUCKET } from '../../value/files/files.ts'
import type { BucketId } from '../../value/ids.ts'
import type { RootDescriptor } from '../../value/product-root.ts'
import { rethrowForApplication } from '../application-faults.ts'
import type { Bucket, Buckets } from './admission.ts'

export class StoredBuckets implements Buckets {
  readonly #control: ControlDatabase

  /** Inserts the bucket `default` if it is missing. Throws PRODUCT_UNAVAILABLE. */
  constructor(control: ControlDatabase, descriptor: RootDescriptor) {
    this.#control = control
    control.transaction((tx) => ensureDefault(tx, descriptor))
  }

  find(name: string): Bucket | null {
    try {
      const found = this.#control.read((reader) => findBucketByName(reader, name))
      if (found === null) return null
      const { configuration, lifecycle } = found
      return { ...configuration, isArchived: lifecycle === 'archived' }
    } catch (error) {
      rethrowForApplication(error)
    }
  }
}

/** The ID of the bucket that every Environment has: the Environment's, with another prefix. */
export function defaultBucketId({ environmentId }: Pick<RootDescriptor, 'environmentId'>) {
  return `bkt_${environmentId.slice('env_'.length)}` as BucketId
}

function ensureDefault(tx: ControlTx, descriptor: RootDescriptor): void {
  if (findBucketByName(tx, DEFAULT_BUCKET) !== null) return
  const { createdAtMicros } = descriptor
  insertBucket(tx, {
    bucketId: defaultBucketId(descriptor),
    configuration: { name: DEFAULT_BUCKET, quotaBytes: null, maximumObjectBytes: null },
    lifecycle: 'active',
    revision: 1n,
    createdAtMicros,
    updatedAtMicros: createdAtMicros,
  })
}
