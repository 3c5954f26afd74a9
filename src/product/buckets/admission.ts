/** Decides which files a bucket admits. */
import { Fault } from '../../errors/fault.ts'
import { DEFAULT_BUCKET } from '../../value/files/files.ts'

export interface Bucket {
  readonly name: string
  /** Maximum bytes of all its files; null if unbounded. */
  readonly quotaBytes: bigint | null
  /** Maximum bytes of one file; null if only the bound of every file applies. */
  readonly maximumObjectBytes: bigint | null
  /** An archived bucket admits no new file. */
  readonly isArchived: boolean
}

export interface Buckets {
  /** Returns null for an unknown name. Raises UNAVAILABLE and INTERNAL. */
  find(name: string): Bucket | null
}

/**
 * The buckets of an engine without a control database, such as that of `svc/test`: only `default`,
 * which admits every file.
 */
export const DEFAULT_BUCKETS: Buckets = {
  find: (name) =>
    name === DEFAULT_BUCKET
      ? { name, quotaBytes: null, maximumObjectBytes: null, isArchived: false }
      : null,
}

/** The rule of a bucket that rejects a file. It is the path of the only violation of the Fault. */
export type BucketRule = 'archived' | 'maximumObjectBytes' | 'quotaBytes'

/**
 * Returns the bucket. Throws FILE_NOT_FOUND for an unknown one, and LIMIT_EXCEEDED if it is
 * archived or the size exceeds its maximum for one object. Does not check the quota.
 */
export function requireAdmission(buckets: Buckets, name: string, size: bigint): Bucket {
  const bucket = buckets.find(name)
  if (bucket === null) throw new Fault('FILE_NOT_FOUND', { detail: `no bucket ${name}` })
  const { maximumObjectBytes, isArchived } = bucket
  if (isArchived) throw bucketFault('archived', 'a bucket that is active')
  if (maximumObjectBytes !== null && size > maximumObjectBytes) {
    throw bucketFault('maximumObjectBytes', `at most ${maximumObjectBytes} bytes a file`)
  }
  return bucket
}

/** Returns LIMIT_EXCEEDED with the rule of the bucket as its violation. */
export function bucketFault(path: BucketRule, rule: string): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail: `bucket: ${rule}`, violations: [{ path, rule }] })
}
