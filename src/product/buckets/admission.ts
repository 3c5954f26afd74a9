/** Buckets as the rules of files see them: what a bucket admits. */
import { Fault } from '../../errors/fault.ts'
import { DEFAULT_BUCKET } from '../../value/files/files.ts'

export interface Bucket {
  readonly name: string
  /** Bytes of all its files; null for no bound. */
  readonly quotaBytes: bigint | null
  /** Bytes of one of its files; null for no bound beyond that of all files. */
  readonly maximumObjectBytes: bigint | null
  /** An archived bucket admits no new file. */
  readonly isArchived: boolean
}

export interface Buckets {
  /** Returns null where there is none of this name. Raises UNAVAILABLE and INTERNAL. */
  find(name: string): Bucket | null
}

/** The only bucket is `default`, which admits every file. */
export const DEFAULT_BUCKETS: Buckets = {
  find: (name) =>
    name === DEFAULT_BUCKET
      ? { name, quotaBytes: null, maximumObjectBytes: null, isArchived: false }
      : null,
}

/** The rule of a bucket that rejects a file. It is the path of the only violation of the Fault. */
export type BucketRule = 'archived' | 'maximumObjectBytes' | 'quotaBytes'

/**
 * Returns the bucket. Throws FILE_NOT_FOUND for an unknown one, and LIMIT_EXCEEDED where it is
 * archived or admits no file of this size, whatever its quota.
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
