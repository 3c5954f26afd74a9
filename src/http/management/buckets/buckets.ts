/** Buckets: what they admit, and what they hold. */
import {
  type BucketChange,
  type BucketState,
  changeBucket,
  readBucket,
  readBuckets,
} from '../../../product/buckets/buckets.ts'
import type { Files } from '../../../product/files/files.ts'
import { appliedOrNull, noOperation } from '../../../product/idempotency/idempotency-records.ts'
import type { OperationId, RequestId } from '../../../value/ids.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import {
  BucketArchive,
  BucketChanged,
  BucketCreate,
  BucketPage,
  BucketRead,
  BucketReplace,
  BucketsQuery,
} from '../../../wire/files/buckets.ts'
import { OperationField } from '../../../wire/operations.ts'
import type { Infer } from '../../../wire/schema.ts'
import { operationField } from '../idempotency-operations.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

const CHANGE_ERRORS = ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'] as const

export const bucketRoutes: readonly Route<BucketsApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/buckets',
    name: 'listBuckets',
    summary: 'Lists buckets in the order of their IDs.',
    capability: 'storage:read',
    query: BucketsQuery,
    replies: { 200: BucketPage },
    handle({ app, query: { after = null, limit = PAGE_DEFAULT } }) {
      const { buckets, next } = readBuckets(app.product, { after, limit })
      const items = buckets.map((bucket) => ({ ...bucket, usage: usageOf(app.files, bucket) }))
      return { status: 200, body: { version: 1 as const, items, next } }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/buckets',
    name: 'createBucket',
    summary: 'Creates a bucket. Its name is never used again.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: BucketCreate },
    replies: { 200: BucketChanged, 201: BucketChanged },
    errors: CHANGE_ERRORS,
    handle({ app, actor, operationId, body: asked, requestId }) {
      const configuration = configurationOf(asked.configuration)
      const change = { verb: 'create', configuration } as const
      const body = apply(app, actor, change, { operationId, requestId, ...asked })
      return { status: body.operation.replayed ? 200 : 201, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/buckets/:bucketId',
    name: 'readBucket',
    summary: 'Returns a bucket and what it holds.',
    capability: 'storage:read',
    replies: { 200: BucketRead },
    handle({ app, params: { bucketId } }) {
      const bucket = readBucket(app.product, bucketId)
      const body = { version: 1 as const, ...bucket, usage: usageOf(app.files, bucket) }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'PUT',
    path: '/buckets/:bucketId',
    name: 'replaceBucket',
    summary: 'Replaces the bounds of a bucket, whose files stay even if they exceed them.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: BucketReplace },
    replies: { 200: BucketChanged },
    errors: [...CHANGE_ERRORS, 'PRODUCT_CAS_CONFLICT'],
    handle({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
      const configuration = configurationOf(asked.configuration)
      const expectedRevision = BigInt(asked.expectedRevision)
      const change = { verb: 'update', bucketId, configuration, expectedRevision } as const
      const body = apply(app, actor, change, { operationId, requestId, ...asked })
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/buckets/:bucketId/archive',
    name: 'archiveBucket',
    summary:
      'Archives a bucket for good: it keeps its files, admits no others, and has no S3 door.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: BucketArchive },
    replies: { 200: BucketChanged },
    errors: [...CHANGE_ERRORS, 'PRODUCT_CAS_CONFLICT'],
    handle({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
      const expectedRevision = BigInt(asked.expectedRevision)
      const change = { verb: 'archive', bucketId, expectedRevision } as const
      const body = apply(app, actor, change, { operationId, requestId, ...asked })
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/bucket-operations/:operationId',
    name: 'readBucketOperation',
    summary: 'Returns the outcome of a change of a bucket, a storage key or an object.',
    capability: 'storage:read',
    replies: { 200: OperationField },
    async handle({ app, params: { operationId } }) {
      const found =
        appliedOrNull(app.product, ['bucket', 'storage_key'], operationId) ??
        (await app.objects.findOperation(operationId))
      if (found === null) throw noOperation(operationId)
      return { status: 200, body: operationField(found) }
    },
  }),
]

interface Requested {
  readonly operationId: OperationId
  readonly requestId: RequestId
  readonly changedAtMicros: string
}

function apply(
  { product }: BucketsApp,
  actor: Parameters<typeof changeBucket>[1],
  change: BucketChange,
  { operationId, requestId, changedAtMicros }: Requested,
): BucketChanged {
  const input = { operationId, change, changedAtMicros: BigInt(changedAtMicros), requestId }
  const { result, operation } = changeBucket(product, actor, input)
  return { version: 1, ...result, operation: operationField(operation) }
}

function configurationOf(asked: Infer<typeof BucketCreate>['configuration']) {
  const bytes = (text: string | null) => (text === null ? null : BigInt(text))
  const { name, quotaBytes, maximumObjectBytes } = asked
  return { name, quotaBytes: bytes(quotaBytes), maximumObjectBytes: bytes(maximumObjectBytes) }
}

function usageOf({ usage }: Files, { configuration }: BucketState) {
  const use = usage.of(configuration.name)
  return use && { files: String(use.files), bytes: String(use.bytes) }
}
