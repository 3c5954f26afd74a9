/** Buckets: what they admit, and what they hold. */
import {
  BucketArchive,
  BucketChanged,
  BucketCreate,
  BucketPage,
  BucketRead,
  BucketReplace,
  BucketsQuery,
} from '../../files/buckets.ts'
import { OperationField } from '../../idempotency-records.ts'
import { environmentOperation } from '../operation.ts'

const CHANGE_ERRORS = ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'] as const

export const listBuckets = environmentOperation({
  method: 'GET',
  path: '/buckets',
  name: 'listBuckets',
  summary: 'Lists buckets in the order of their IDs.',
  capability: 'storage:read',
  query: BucketsQuery,
  replies: { 200: BucketPage },
})

export const createBucket = environmentOperation({
  method: 'POST',
  path: '/buckets',
  name: 'createBucket',
  summary: 'Creates a bucket. Its name is never used again.',
  capability: 'storage:manage',
  operationId: 'required',
  body: { schema: BucketCreate },
  replies: { 200: BucketChanged, 201: BucketChanged },
  errors: CHANGE_ERRORS,
})

export const readBucket = environmentOperation({
  method: 'GET',
  path: '/buckets/:bucketId',
  name: 'readBucket',
  summary: 'Returns a bucket and what it holds.',
  capability: 'storage:read',
  replies: { 200: BucketRead },
})

export const replaceBucket = environmentOperation({
  method: 'PUT',
  path: '/buckets/:bucketId',
  name: 'replaceBucket',
  summary: 'Replaces the bounds of a bucket, whose files stay even if they exceed them.',
  capability: 'storage:manage',
  operationId: 'required',
  body: { schema: BucketReplace },
  replies: { 200: BucketChanged },
  errors: [...CHANGE_ERRORS, 'PRODUCT_CAS_CONFLICT'],
})

export const archiveBucket = environmentOperation({
  method: 'POST',
  path: '/buckets/:bucketId/archive',
  name: 'archiveBucket',
  summary:
    'Archives a bucket permanently: it keeps its files, admits no others, and has no S3 access.',
  capability: 'storage:manage',
  operationId: 'required',
  body: { schema: BucketArchive },
  replies: { 200: BucketChanged },
  errors: [...CHANGE_ERRORS, 'PRODUCT_CAS_CONFLICT'],
})

export const readBucketOperation = environmentOperation({
  method: 'GET',
  path: '/bucket-operations/:operationId',
  name: 'readBucketOperation',
  summary: 'Returns the outcome of a change of a bucket, a storage key or an object.',
  capability: 'storage:read',
  replies: { 200: OperationField },
})

export const bucketOperations = {
  listBuckets,
  createBucket,
  readBucket,
  replaceBucket,
  archiveBucket,
  readBucketOperation,
}
