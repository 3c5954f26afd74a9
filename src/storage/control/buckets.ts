/** Rows of buckets. Callers apply the rules. */
import type { BucketId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

/** A type rather than an interface, so that the compiler accepts it as JSON. */
export type BucketConfiguration = {
  readonly name: string
  /** Bytes of all its files; null for no bound. */
  readonly quotaBytes: bigint | null
  /** Bytes of one of its files; null for no bound beyond that of all files. */
  readonly maximumObjectBytes: bigint | null
}

export interface StoredBucket {
  readonly bucketId: BucketId
  readonly configuration: BucketConfiguration
  readonly lifecycle: 'active' | 'archived'
  /** Grows by one with every change, from 1. */
  readonly revision: bigint
  readonly createdAtMicros: bigint
  readonly updatedAtMicros: bigint
}

interface Row {
  bucket_id: BucketId
  name: string
  lifecycle: StoredBucket['lifecycle']
  quota_bytes: number | null
  maximum_object_bytes: number | null
  revision: number
  created_at: number
  updated_at: number
}

const SELECT = `select bucket_id, name, lifecycle, quota_bytes, maximum_object_bytes, revision,
        created_at, updated_at
   from buckets`

export function findBucket(reader: ControlReader, id: BucketId): StoredBucket | null {
  return bucketOrNull(reader.get<Row>(`${SELECT} where bucket_id = ?`, id))
}

export function findBucketByName(reader: ControlReader, name: string): StoredBucket | null {
  return bucketOrNull(reader.get<Row>(`${SELECT} where name = ?`, name))
}

/** Returns buckets in the order of their IDs, beginning after one of them. */
export function listBuckets(
  reader: ControlReader,
  { after, limit }: { readonly after: BucketId | null; readonly limit: number },
): StoredBucket[] {
  return reader
    .all<Row>(`${SELECT} where bucket_id > ? order by bucket_id limit ?`, after ?? '', limit)
    .map(toBucket)
}

export function countBuckets(reader: ControlReader): number {
  return reader.get<{ count: number }>('select count(*) as count from buckets')!.count
}

export function insertBucket(tx: ControlTx, bucket: StoredBucket): void {
  const { name, quotaBytes, maximumObjectBytes } = bucket.configuration
  tx.run(
    `insert into buckets (bucket_id, name, lifecycle, quota_bytes, maximum_object_bytes, revision,
            created_at, updated_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    bucket.bucketId,
    name,
    bucket.lifecycle,
    quotaBytes,
    maximumObjectBytes,
    bucket.revision,
    bucket.createdAtMicros,
    bucket.updatedAtMicros,
  )
}

/** Stores the next revision of a bucket, whose name stays as it is. */
export function updateBucket(tx: ControlTx, bucket: StoredBucket): void {
  const { quotaBytes, maximumObjectBytes } = bucket.configuration
  tx.run(
    `update buckets set lifecycle = ?, quota_bytes = ?, maximum_object_bytes = ?, revision = ?,
            updated_at = ?
      where bucket_id = ?`,
    bucket.lifecycle,
    quotaBytes,
    maximumObjectBytes,
    bucket.revision,
    bucket.updatedAtMicros,
    bucket.bucketId,
  )
}

function bucketOrNull(row: Row | null): StoredBucket | null {
  return row === null ? null : toBucket(row)
}

function toBucket(row: Row): StoredBucket {
  return {
    bucketId: row.bucket_id,
    configuration: {
      name: row.name,
      quotaBytes: toBytes(row.quota_bytes),
      maximumObjectBytes: toBytes(row.maximum_object_bytes),
    },
    lifecycle: row.lifecycle,
    revision: BigInt(row.revision),
    createdAtMicros: BigInt(row.created_at),
    updatedAtMicros: BigInt(row.updated_at),
  }
}

function toBytes(column: number | null): bigint | null {
  return column === null ? null : BigInt(column)
}
