/** The routes of buckets, storage keys and objects of the linked Environment. */
import { Fault } from '../../../errors/fault.ts'
import { DEFAULT_BUCKET } from '../../../value/files/files.ts'
import { type BucketId, isId, type OperationId, type StorageKeyId } from '../../../value/ids.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import {
  BucketChanged,
  BucketPage,
  type BucketRead,
  ObjectChanged,
  type ObjectField,
  ObjectPage,
  StorageKeyIssued,
  StorageKeyPage,
  StorageKeyRevoked,
} from '../../../wire/files/buckets.ts'
import { OPERATION_ID_HEADER } from '../../../wire/idempotency-records.ts'
import { option } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { readPages } from '../../network/pages.ts'
import type { Remote } from '../../remotes.ts'
import type { BytesReply } from '../../requests.ts'

export type BucketItem = BucketPage['items'][number]

/** 1,000 objects whose keys have 1,024 characters that JSON escapes. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024
/** For 64 MiB at 256 KiB/s. */
const TRANSFER_MS = 300_000

export const BUCKET = option('NAME', `The bucket; ${DEFAULT_BUCKET} by default`)

export interface Change {
  readonly operationId: OperationId
  readonly changedAtMicros: string
}

type Configuration = BucketRead['configuration']

export function listBuckets({ session, base }: Remote): Promise<readonly BucketItem[]> {
  return readPages<BucketItem>((after) =>
    session.management({
      method: 'GET',
      path: `${base}/buckets?${pageQuery(after)}`,
      reply: BucketPage,
      replay: 'safe',
    }),
  )
}

function pageQuery(after: string | null): string {
  return `limit=${PAGE_MAX}${after === null ? '' : `&after=${after}`}`
}

/** Finds a bucket by its name or its ID. Throws PRODUCT_NOT_FOUND. */
export async function findBucket(
  remote: Remote,
  name: string = DEFAULT_BUCKET,
): Promise<BucketItem> {
  const found = (await listBuckets(remote)).find(({ bucketId, configuration }) => {
    return isId('bkt', name) ? bucketId === name : configuration.name === name
  })
  if (found !== undefined) return found
  throw new Fault('PRODUCT_NOT_FOUND', {
    detail: `There is no bucket ${name}.`,
    cause: explanation({ next: 'Run `svc buckets list` to see what exists.' }),
  })
}

export function createBucket(
  { session, base }: Remote,
  { operationId, changedAtMicros }: Change,
  configuration: Configuration,
): Promise<BucketChanged> {
  return session.management({
    method: 'POST',
    path: `${base}/buckets`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    body: { configuration, changedAtMicros },
    reply: BucketChanged,
    replay: 'safe',
  })
}

/** Replaces the bounds of a bucket, or archives it where `configuration` is null. */
export function changeBucket(
  { session, base }: Remote,
  { operationId, ...change }: Change & { readonly expectedRevision: string },
  bucketId: BucketId,
  configuration: Configuration | null,
): Promise<BucketChanged> {
  const path = `${base}/buckets/${bucketId}`
  return session.management({
    method: configuration === null ? 'POST' : 'PUT',
    path: configuration === null ? `${path}/archive` : path,
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { bucketId },
    body: configuration === null ? change : { ...change, configuration },
    reply: BucketChanged,
    replay: 'safe',
  })
}

/** Reads every key, the revoked ones included. */
export async function listStorageKeys(
  { session, base }: Remote,
  bucketId: BucketId,
): Promise<StorageKeyPage> {
  const items = await readPages<StorageKeyPage['items'][number]>((after) =>
    session.management({
      method: 'GET',
      path: `${base}/buckets/${bucketId}/keys?${pageQuery(after)}`,
      subjects: { bucketId },
      reply: StorageKeyPage,
      replay: 'safe',
    }),
  )
  return { version: 1, items, next: null }
}

interface NewKey {
  readonly name: string
  readonly access: 'read' | 'write'
}

/** Issues a key; with the ID of one, a second one like it. */
export function issueStorageKey(
  { session, base }: Remote,
  { operationId, changedAtMicros }: Change,
  bucketId: BucketId,
  key: NewKey | StorageKeyId,
): Promise<StorageKeyIssued> {
  const path = `${base}/buckets/${bucketId}/keys`
  const isRotation = typeof key === 'string'
  return session.management({
    method: 'POST',
    path: isRotation ? `${path}/${key}/rotate` : path,
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { bucketId, ...(isRotation && { storageKeyId: key }) },
    body: isRotation ? { changedAtMicros } : { ...key, changedAtMicros },
    reply: StorageKeyIssued,
    replay: 'safe',
  })
}

export function revokeStorageKey(
  { session, base }: Remote,
  { operationId, changedAtMicros }: Change,
  bucketId: BucketId,
  storageKeyId: StorageKeyId,
): Promise<StorageKeyRevoked> {
  return session.management({
    method: 'POST',
    path: `${base}/buckets/${bucketId}/keys/${storageKeyId}/revoke`,
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { bucketId, storageKeyId },
    body: { changedAtMicros },
    reply: StorageKeyRevoked,
    replay: 'safe',
  })
}

export function listObjects(
  { session, base }: Remote,
  bucketId: BucketId,
  query: URLSearchParams,
): Promise<ObjectPage> {
  return session.management({
    method: 'GET',
    path: `${base}/buckets/${bucketId}/objects?${query}`,
    subjects: { bucketId },
    reply: ObjectPage,
    replay: 'safe',
    responseBytesMax: PAGE_BYTES_MAX,
  })
}

/** Returns the metadata of an object. Throws PRODUCT_NOT_FOUND. */
export async function findObject(
  remote: Remote,
  bucketId: BucketId,
  key: string,
): Promise<ObjectField> {
  // A key is the first of all that begin with it.
  const query = new URLSearchParams({ prefix: key, limit: '1' })
  const { items } = await listObjects(remote, bucketId, query)
  if (items[0]?.key === key) return items[0]
  throw new Fault('PRODUCT_NOT_FOUND', {
    detail: `The bucket has no object ${key}.`,
    cause: explanation({ next: 'Run `svc files list` to see what exists.' }),
  })
}

export function putObject(
  { session, base }: Remote,
  operationId: OperationId,
  { bucketId, key }: ObjectPath,
  content: { readonly bytes: Uint8Array; readonly type: string },
): Promise<ObjectChanged> {
  return session.management({
    method: 'PUT',
    path: objectPath(base, bucketId, key),
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { bucketId, key },
    body: content.bytes,
    contentType: content.type,
    reply: ObjectChanged,
    replay: 'safe',
    deadlineMs: TRANSFER_MS,
  })
}

export interface ObjectPath {
  readonly bucketId: BucketId
  readonly key: string
}

/**
 * Reads bytes from `start` to `end` (exclusive). The status is 200 where the object has other bytes
 * than those of the digest.
 */
export function readRange(
  { session, base }: Remote,
  { bucketId, key }: ObjectPath,
  { start, end, sha256 }: { readonly start: number; readonly end: number; readonly sha256: string },
): Promise<BytesReply> {
  return session.management<BytesReply>({
    method: 'GET',
    path: objectPath(base, bucketId, key),
    headers: {
      accept: '*/*',
      range: `bytes=${start}-${end - 1}`,
      'if-range': `"${sha256}"`,
    },
    subjects: { bucketId, key },
    reply: 'bytes',
    replay: 'safe',
    deadlineMs: TRANSFER_MS,
    responseBytesMax: end - start,
  })
}

export function deleteObject(
  { session, base }: Remote,
  operationId: OperationId,
  { bucketId, key }: ObjectPath,
): Promise<ObjectChanged> {
  return session.management({
    method: 'DELETE',
    path: objectPath(base, bucketId, key),
    headers: { [OPERATION_ID_HEADER]: operationId },
    subjects: { bucketId, key },
    reply: ObjectChanged,
    replay: 'safe',
  })
}

/** Escapes the whole key, slashes included: a URL would resolve the segments of `a/../b`. */
function objectPath(base: string, bucketId: BucketId, key: string): string {
  return `${base}/buckets/${bucketId}/objects/${encodeURIComponent(key)}`
}
