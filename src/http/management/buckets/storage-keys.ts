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
import {
  StorageKeyChange,
  type StorageKeyField,
  StorageKeyIssue,
  StorageKeyIssued,
  StorageKeyPage,
  StorageKeyRevoked,
  StorageKeysQuery,
} from '../../../wire/files/buckets.ts'
import { operationField } from '../idempotency-operations.ts'
import { environmentRoute, type ReplyOf, type Route } from '../route.ts'
import type { BucketsApp } from './app.ts'

const KEYS = '/buckets/:bucketId/keys'
const ISSUED = { 200: StorageKeyIssued, 201: StorageKeyIssued } as const

export const storageKeyRoutes: readonly Route<BucketsApp>[] = [
  environmentRoute({
    method: 'GET',
    path: KEYS,
    name: 'listStorageKeys',
    summary: 'Lists the storage keys of a bucket, without secrets.',
    capability: 'storage:read',
    query: StorageKeysQuery,
    replies: { 200: StorageKeyPage },
    handle({ app, params: { bucketId }, query: { after = null, limit = PAGE_DEFAULT } }) {
      const { keys, next } = readStorageKeys(app.product, bucketId, { after, limit })
      return { status: 200, body: { version: 1 as const, items: keys.map(keyField), next } }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: KEYS,
    name: 'issueStorageKey',
    summary: 'Issues a storage key. Only this response contains its secret.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: StorageKeyIssue },
    replies: ISSUED,
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    cache: 'no-store, max-age=0',
    handle({ app, actor, params: { bucketId }, operationId, body: asked, requestId }) {
      const changedAtMicros = BigInt(asked.changedAtMicros)
      const input = { ...asked, bucketId, operationId, changedAtMicros, requestId }
      return issuedReply(issueStorageKey(app.product, actor, input))
    },
  }),

  environmentRoute({
    method: 'POST',
    path: `${KEYS}/:storageKeyId/rotate`,
    name: 'rotateStorageKey',
    summary: 'Issues a second storage key. The first one stays active until it is revoked.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: StorageKeyChange },
    replies: ISSUED,
    errors: ['PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    cache: 'no-store, max-age=0',
    handle({ app, actor, params, operationId, body: asked, requestId }) {
      const { bucketId, storageKeyId } = params
      const changedAtMicros = BigInt(asked.changedAtMicros)
      const input = { bucketId, storageKeyId, operationId, changedAtMicros, requestId }
      return issuedReply(rotateStorageKey(app.product, actor, input))
    },
  }),

  environmentRoute({
    method: 'POST',
    path: `${KEYS}/:storageKeyId/revoke`,
    name: 'revokeStorageKey',
    summary: 'Revokes a storage key permanently, from the next request on.',
    capability: 'storage:manage',
    operationId: 'required',
    body: { schema: StorageKeyChange },
    replies: { 200: StorageKeyRevoked },
    errors: ['PRODUCT_INVALID'],
    handle({ app, actor, params, operationId, body: asked, requestId }) {
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
  }),
]

function issuedReply({ result, operation, secret }: IssuedKey): ReplyOf<typeof ISSUED> {
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
