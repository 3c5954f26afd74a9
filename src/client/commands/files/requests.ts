/** The routes of buckets, storage keys and objects of the linked Environment. */
import { Fault } from '../../../errors/fault.ts'
import { DEFAULT_BUCKET } from '../../../value/files/files.ts'
import { type BucketId, isId, type OperationId, type StorageKeyId } from '../../../value/ids.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type {
  BucketChanged,
  BucketPage,
  BucketRead,
  ObjectField,
  StorageKeyIssued,
  StorageKeyPage,
} from '../../../wire/files/buckets.ts'
import {
  archiveBucket,
  listBuckets as listBucketsOperation,
  replaceBucket,
} from '../../../wire/operations/buckets/buckets.ts'
import { listObjects, readObject } from '../../../wire/operations/buckets/objects.ts'
import {
  issueStorageKey as issueStorageKeyOperation,
  listStorageKeys as listStorageKeysOperation,
  rotateStorageKey,
} from '../../../wire/operations/buckets/storage-keys.ts'
import { type Context, option } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { readPages } from '../../network/pages.ts'
import type { BytesReply } from '../../requests/requests.ts'
import { openRemote, type Remote, type RemoteOptions } from '../../roots/remotes.ts'

export type BucketItem = BucketPage['items'][number]

export const BUCKET = option('NAME', `The bucket; ${DEFAULT_BUCKET} by default`)

export interface Change {
  readonly operationId: OperationId
  readonly changedAtMicros: string
}

type Configuration = BucketRead['configuration']

export function listBuckets(remote: Remote): Promise<readonly BucketItem[]> {
  return readPages<BucketItem>((after) =>
    remote.call(listBucketsOperation, { query: pageQuery(after) }),
  )
}

function pageQuery(after: string | null) {
  return { limit: PAGE_MAX, after: after ?? undefined }
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

/** Opens the server and finds the bucket there. Throws PRODUCT_NOT_FOUND. */
export async function openBucket(
  context: Context,
  at: RemoteOptions,
  name: string | undefined,
): Promise<{ readonly remote: Remote; readonly bucket: BucketItem }> {
  const remote = await openRemote(context, at)
  return { remote, bucket: await findBucket(remote, name) }
}

/** Replaces the bounds of a bucket, or archives it where `configuration` is null. */
export function changeBucket(
  remote: Remote,
  { operationId, ...change }: Change & { readonly expectedRevision: string },
  bucketId: BucketId,
  configuration: Configuration | null,
): Promise<BucketChanged> {
  const named = { params: { bucketId }, operationId, subjects: { bucketId } }
  return configuration === null
    ? remote.call(archiveBucket, { ...named, body: change })
    : remote.call(replaceBucket, { ...named, body: { ...change, configuration } })
}

/** Reads every key, the revoked ones included. */
export async function listStorageKeys(remote: Remote, bucketId: BucketId): Promise<StorageKeyPage> {
  const items = await readPages<StorageKeyPage['items'][number]>((after) =>
    remote.call(listStorageKeysOperation, {
      params: { bucketId },
      query: pageQuery(after),
      subjects: { bucketId },
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
  remote: Remote,
  { operationId, changedAtMicros }: Change,
  bucketId: BucketId,
  key: NewKey | StorageKeyId,
): Promise<StorageKeyIssued> {
  if (typeof key !== 'string') {
    return remote.call(issueStorageKeyOperation, {
      params: { bucketId },
      operationId,
      body: { ...key, changedAtMicros },
      subjects: { bucketId },
    })
  }
  const named = { bucketId, storageKeyId: key }
  return remote.call(rotateStorageKey, {
    params: named,
    operationId,
    body: { changedAtMicros },
    subjects: named,
  })
}

/** Returns the metadata of an object. Throws PRODUCT_NOT_FOUND. */
export async function findObject(
  remote: Remote,
  bucketId: BucketId,
  key: string,
): Promise<ObjectField> {
  // A key is the first of all that begin with it.
  const { items } = await remote.call(listObjects, {
    params: { bucketId },
    query: { prefix: key, limit: 1 },
    subjects: { bucketId },
  })
  if (items[0]?.key === key) return items[0]
  throw new Fault('PRODUCT_NOT_FOUND', {
    detail: `The bucket has no object ${key}.`,
    cause: explanation({ next: 'Run `svc files list` to see what exists.' }),
  })
}

export interface ObjectPath {
  readonly bucketId: BucketId
  readonly key: string
}

/** Names an object in a request and in messages about it. */
export function objectNamed({ bucketId, key }: ObjectPath) {
  return { params: { bucketId, objectKey: key }, subjects: { bucketId, key } }
}

/**
 * Reads bytes from `start` to `end` (exclusive). The status is 200 where the object has other bytes
 * than those of the digest.
 */
export function readRange(
  remote: Remote,
  path: ObjectPath,
  { start, end, sha256 }: { readonly start: number; readonly end: number; readonly sha256: string },
): Promise<BytesReply> {
  return remote.call(readObject, {
    ...objectNamed(path),
    headers: { range: `bytes=${start}-${end - 1}`, 'if-range': `"${sha256}"` },
    responseBytesMax: end - start,
  })
}
