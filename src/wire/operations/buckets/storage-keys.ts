/** Storage keys of a bucket. Only the first response to an issue has the secret. */
import {
  StorageKeyChange,
  StorageKeyIssue,
  StorageKeyIssued,
  StorageKeyPage,
  StorageKeyRevoked,
  StorageKeysQuery,
} from '../../files/buckets.ts'
import { environmentOperation } from '../operation.ts'

const ISSUED = { 200: StorageKeyIssued, 201: StorageKeyIssued } as const

const KEYS = '/buckets/:bucketId/keys'

export const listStorageKeys = environmentOperation({
  method: 'GET',
  path: KEYS,
  name: 'listStorageKeys',
  summary: 'Lists the storage keys of a bucket, without secrets.',
  capability: 'storage:read',
  query: StorageKeysQuery,
  replies: { 200: StorageKeyPage },
})

export const issueStorageKey = environmentOperation({
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
})

export const rotateStorageKey = environmentOperation({
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
})

export const revokeStorageKey = environmentOperation({
  method: 'POST',
  path: `${KEYS}/:storageKeyId/revoke`,
  name: 'revokeStorageKey',
  summary: 'Revokes a storage key permanently, from the next request on.',
  capability: 'storage:manage',
  operationId: 'required',
  body: { schema: StorageKeyChange },
  replies: { 200: StorageKeyRevoked },
  errors: ['PRODUCT_INVALID'],
})

export const storageKeyOperations = {
  listStorageKeys,
  issueStorageKey,
  rotateStorageKey,
  revokeStorageKey,
}
