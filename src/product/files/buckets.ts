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

/** Finds buckets and knows how full they are. */
export interface Buckets {
  /** Returns null where there is none of this name. */
  find(name: string): Bucket | null
  /** Bytes of the files of a bucket, as far as they are durable. */
  usedBytes(name: string): bigint
}

/** The only bucket is `default`, which admits every file. */
export const DEFAULT_BUCKETS: Buckets = {
  find: (name) =>
    name === DEFAULT_BUCKET
      ? { name, quotaBytes: null, maximumObjectBytes: null, isArchived: false }
      : null,
  usedBytes: () => 0n,
}

/** Throws FILE_NOT_FOUND for an unknown bucket and LIMIT_EXCEEDED where it admits no such file. */
export function requireAdmission(buckets: Buckets, name: string, size: bigint): void {
  const bucket = buckets.find(name)
  if (bucket === null) throw new Fault('FILE_NOT_FOUND', { detail: `no bucket ${name}` })
  const { quotaBytes, maximumObjectBytes, isArchived } = bucket
  if (isArchived) throw exceeded(`the bucket ${name} is archived`)
  if (maximumObjectBytes !== null && size > maximumObjectBytes) {
    throw exceeded(`bucket ${name}: at most ${maximumObjectBytes} bytes a file`)
  }
  if (quotaBytes !== null && buckets.usedBytes(name) + size > quotaBytes) {
    throw exceeded(`bucket ${name}: at most ${quotaBytes} bytes in all`)
  }
}

function exceeded(detail: string): Fault {
  return new Fault('LIMIT_EXCEEDED', { detail })
}
