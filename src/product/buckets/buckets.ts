/**
 * Buckets as operators manage them. Files have the name of their bucket, so a name is never changed
 * or used again; an archived bucket keeps its files, admits no others and stays archived.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  type BucketConfiguration,
  countBuckets,
  findBucket,
  findBucketByName,
  insertBucket,
  listBuckets,
  type StoredBucket,
  updateBucket,
} from '../../storage/control/buckets.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import { QUOTA_BYTES_MAX } from '../../value/files/buckets.ts'
import { DEFAULT_BUCKET, isBucketName } from '../../value/files/files.ts'
import type { BucketId, OperationId, RequestId } from '../../value/ids.ts'
import type { BucketRead } from '../../wire/files/buckets.ts'
import { type Applied, applyOnce } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, notFound, stateConflict } from '../resource-faults.ts'

export type { BucketConfiguration } from '../../storage/control/buckets.ts'

/** @limit Files: buckets */
export const BUCKETS_MAX = 1_000

/** Stored as JSON with its idempotency record, so numbers and times are decimal text. */
export type BucketState = Omit<BucketRead, 'version' | 'usage'>

export type BucketChange =
  | { readonly verb: 'create'; readonly configuration: BucketConfiguration }
  | {
      readonly verb: 'update'
      readonly bucketId: BucketId
      readonly configuration: BucketConfiguration
      readonly expectedRevision: bigint
    }
  | { readonly verb: 'archive'; readonly bucketId: BucketId; readonly expectedRevision: bigint }

export interface ChangeBucketInput {
  readonly operationId: OperationId
  readonly change: BucketChange
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

/** Throws PRODUCT_NOT_FOUND. */
export function readBucket({ root }: RootPort, bucketId: BucketId): BucketState {
  return root.control.read((reader) => stateOf(requireBucket(reader, bucketId)))
}

/** Returns a page in the order of the IDs. `after` is `next` of the last page, null at first. */
export function readBuckets(
  { root }: RootPort,
  { after, limit }: { readonly after: BucketId | null; readonly limit: number },
): { readonly buckets: readonly BucketState[]; readonly next: BucketId | null } {
  const found = root.control.read((reader) => listBuckets(reader, { after, limit: limit + 1 }))
  const buckets = found.slice(0, limit).map(stateOf)
  return { buckets, next: found.length > limit ? buckets.at(-1)!.bucketId : null }
}

/**
 * Creates, replaces or archives a bucket, for all uploads that are committed from then on. Throws
 * PRODUCT_INVALID, PRODUCT_NOT_FOUND, PRODUCT_CAS_CONFLICT for another revision than the expected
 * one, PRODUCT_OPERATION_REUSED, and PRODUCT_STATE_CONFLICT for a name that is taken or would
 * change, an archived bucket, the archive of `default` and one bucket too many.
 */
export function changeBucket(
  ports: ChangePorts,
  actor: Actor,
  { operationId, change, changedAtMicros, requestId }: ChangeBucketInput,
): Applied<BucketState> {
  if (change.verb !== 'archive') requireConfiguration(change.configuration)
  const bucketId = change.verb === 'create' ? ports.system.ids.make('bkt') : change.bucketId
  const intent = {
    operationId,
    kind: `bucket.${change.verb}`,
    request: requestOf(change),
    changedAtMicros,
    subject: bucketId,
    requestId,
  } as const
  return applyOnce(ports, actor, intent, (tx) => {
    const nowMicros = ports.system.nowMicros()
    const next =
      change.verb === 'create'
        ? create(tx, bucketId, change.configuration, nowMicros)
        : replace(tx, change, nowMicros)
    return { result: stateOf(next), revision: next.revision }
  })
}

/** Throws PRODUCT_NOT_FOUND. */
export function requireBucket(reader: ControlReader, bucketId: BucketId): StoredBucket {
  const found = findBucket(reader, bucketId)
  if (found !== null) return found
  throw notFound({ path: 'bucketId', rule: 'a bucket of this Environment', detail: bucketId })
}

/** Throws PRODUCT_STATE_CONFLICT for an archived bucket. */
export function requireActive({ bucketId, lifecycle }: StoredBucket): void {
  if (lifecycle === 'active') return
  const rule = 'a bucket that is active; this one is archived'
  throw stateConflict({ path: 'bucketId', rule, detail: `${bucketId} is archived` })
}

function create(
  tx: ControlTx,
  bucketId: BucketId,
  configuration: BucketConfiguration,
  nowMicros: bigint,
): StoredBucket {
  const { name } = configuration
  if (findBucketByName(tx, name) !== null) {
    const rule = 'a name that no bucket has or had'
    throw stateConflict({ path: 'configuration.name', rule, detail: `${name} is taken` })
  }
  if (countBuckets(tx) >= BUCKETS_MAX) {
    throw limitReached('configuration.name', BUCKETS_MAX, 'buckets')
  }
  const times = { createdAtMicros: nowMicros, updatedAtMicros: nowMicros }
  const bucket = { bucketId, configuration, lifecycle: 'active', revision: 1n, ...times } as const
  insertBucket(tx, bucket)
  return bucket
}

function replace(
  tx: ControlTx,
  change: Exclude<BucketChange, { verb: 'create' }>,
  nowMicros: bigint,
): StoredBucket {
  const current = requireBucket(tx, change.bucketId)
  if (current.revision !== change.expectedRevision) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${current.revision}` })
  }
  requireActive(current)
  const { name } = current.configuration
  if (change.verb === 'archive' && name === DEFAULT_BUCKET) {
    const rule = `another bucket than ${DEFAULT_BUCKET}, which always exists`
    throw stateConflict({ path: 'bucketId', rule, detail: 'archive of the default bucket' })
  }
  if (change.verb === 'update' && change.configuration.name !== name) {
    const rule = 'the name that the bucket has; its files have it too'
    throw stateConflict({ path: 'configuration.name', rule, detail: `the name is ${name}` })
  }
  const revised = { ...current, revision: current.revision + 1n, updatedAtMicros: nowMicros }
  const next: StoredBucket =
    change.verb === 'archive'
      ? { ...revised, lifecycle: 'archived' }
      : { ...revised, configuration: change.configuration }
  updateBucket(tx, next)
  return next
}

function requireConfiguration(configuration: BucketConfiguration): void {
  if (!isBucketName(configuration.name)) {
    const rule = '3 to 63 lower-case letters, digits and hyphens, with no hyphen at an end'
    throw invalid('configuration.name', rule)
  }
  for (const field of ['quotaBytes', 'maximumObjectBytes'] as const) {
    const bytes = configuration[field]
    if (bytes !== null && bytes > QUOTA_BYTES_MAX) {
      throw invalid(`configuration.${field}`, `at most ${QUOTA_BYTES_MAX}`)
    }
  }
}

function requestOf(change: BucketChange) {
  const { verb } = change
  if (verb === 'create') return { configuration: jsonOf(change.configuration) }
  const named = { bucketId: change.bucketId, expectedRevision: String(change.expectedRevision) }
  return verb === 'archive' ? named : { ...named, configuration: jsonOf(change.configuration) }
}

function stateOf({ configuration, ...bucket }: StoredBucket): BucketState {
  return {
    bucketId: bucket.bucketId,
    lifecycle: bucket.lifecycle,
    revision: String(bucket.revision),
    configuration: jsonOf(configuration),
    createdAtMicros: String(bucket.createdAtMicros),
    updatedAtMicros: String(bucket.updatedAtMicros),
  }
}

function jsonOf({ name, quotaBytes, maximumObjectBytes }: BucketConfiguration) {
  const text = (bytes: bigint | null) => (bytes === null ? null : String(bytes))
  return { name, quotaBytes: text(quotaBytes), maximumObjectBytes: text(maximumObjectBytes) }
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
