/** Storage keys of a bucket. Only the first response to an issue has the secret. */
import {
  type IssuedKey,
  issueStorageKey,
  readStorageKeys,
  revokeStorageKey,
  rotateStorageKey,
  type StorageKeyState,
} from '../../../product/buckets/storage-keys.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import type {
  StorageKeyField,
  StorageKeyIssued,
  StorageKeyRevoked,
} from '../../../wire/files/buckets.ts'
import { storageKeyOperations } from '../../../wire/operations/buckets/storage-keys.ts'
import { operationField } from '../idempotency-operations.ts'
import { bind, type ReplyOf, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

export const storageKeyRoutes: readonly Route<BucketsApp>[] = bind(storageKeyOperations, {
  listStorageKeys({ app, params: { bucketId }, query: { after = null, limit = PAGE_DEFAULT } }) {
    const { keys, next } = readStorageKeys(app.product, bucketId, { after, limit })
    return { status: 200, body: { version: 1 as const, items: keys.map(keyField), next } }
  },

  issueStorageKey({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { ...asked, bucketId, operationId, changedAtMicros, requestId }
    return issuedReply(issueStorageKey(app.product, actor, input))
  },

  rotateStorageKey({ app, actor, params, operationId, body: asked, requestId }) {
    const { bucketId, storageKeyId } = params
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { bucketId, storageKeyId, operationId, changedAtMicros, requestId }
    return issuedReply(rotateStorageKey(app.product, actor, input))
  },

  revokeStorageKey({ app, actor, params, operationId, body: asked, requestId }) {
    const { bucketId, storageKeyId } = params
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { bucketId, storageKeyId, operationId, changedAtMicros, requestId }
    const { result, operation } = revokeStorageKey(app.product, actor, input)
    const body: StorageKeyRevoked = {
      version: 1,
      storageKey: keyField(result),
      operation: operationField(operation),
    }
    return { status: 200, body }
  },
})

function issuedReply({
  result,
  operation,
  secret,
}: IssuedKey): ReplyOf<(typeof storageKeyOperations.issueStorageKey)['replies']> {
  const { storageKeyId } = result
  const { replayed } = operation
  const body: StorageKeyIssued = {
    version: 1,
    storageKeyId,
    accessKeyId: storageKeyId,
    secretAccessKey: secret?.reveal() ?? null,
    secretShownOnce: secret !== null,
    replayed,
  }
  return { status: replayed ? 200 : 201, body }
}

function keyField(key: StorageKeyState): StorageKeyField {
  return { ...key, accessKeyId: key.storageKeyId }
}
