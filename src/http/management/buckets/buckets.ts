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
import type { BucketChanged, BucketCreate } from '../../../wire/files/buckets.ts'
import { bucketOperations } from '../../../wire/operations/buckets/buckets.ts'
import type { Infer } from '../../../wire/schema.ts'
import { operationField } from '../idempotency-operations.ts'
import { bind, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

export const bucketRoutes: readonly Route<BucketsApp>[] = bind(bucketOperations, {
  listBuckets({ app, query: { after = null, limit = PAGE_DEFAULT } }) {
    const { buckets, next } = readBuckets(app.product, { after, limit })
    const items = buckets.map((bucket) => ({ ...bucket, usage: usageOf(app.files, bucket) }))
    return { status: 200, body: { version: 1 as const, items, next } }
  },

  createBucket({ app, actor, operationId, body: asked, requestId }) {
    const configuration = configurationOf(asked.configuration)
    const change = { verb: 'create', configuration } as const
    const body = apply(app, actor, change, { operationId, requestId, ...asked })
    return { status: body.operation.replayed ? 200 : 201, body }
  },

  readBucket({ app, params: { bucketId } }) {
    const bucket = readBucket(app.product, bucketId)
    const body = { version: 1 as const, ...bucket, usage: usageOf(app.files, bucket) }
    return { status: 200, body }
  },

  replaceBucket({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
    const configuration = configurationOf(asked.configuration)
    const expectedRevision = BigInt(asked.expectedRevision)
    const change = { verb: 'update', bucketId, configuration, expectedRevision } as const
    const body = apply(app, actor, change, { operationId, requestId, ...asked })
    return { status: 200, body }
  },

  archiveBucket({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
    const expectedRevision = BigInt(asked.expectedRevision)
    const change = { verb: 'archive', bucketId, expectedRevision } as const
    const body = apply(app, actor, change, { operationId, requestId, ...asked })
    return { status: 200, body }
  },

  async readBucketOperation({ app, params: { operationId } }) {
    const found =
      appliedOrNull(app.product, ['bucket', 'storage_key'], operationId) ??
      (await app.objects.findOperation(operationId))
    if (found === null) throw noOperation(operationId)
    return { status: 200, body: operationField(found) }
  },
})

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
