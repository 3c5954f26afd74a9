/**
 * Objects that operators store and delete. A change is applied once for its Operation ID: its
 * record is committed with the metadata in the document store, since one transaction cannot span
 * that and the control database.
 */
import type { FileDocument } from '../../engine/files/file-documents.ts'
import type { RecordOperation } from '../../engine/files/system-documents.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { checksumStream } from '../../system/checksums.ts'
import { digestEquals, sha256, sha256Hex } from '../../system/digests.ts'
import { inSlices } from '../../system/event-loop.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import { isContentType, isObjectKey } from '../../value/files/files.ts'
import type { BucketId, Id, OperationId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import type { ObjectField } from '../../wire/files/buckets.ts'
import type { HeldAudits } from '../audit/held-audits.ts'
import { requireAdmission } from '../buckets/admission.ts'
import { requireBucket } from '../buckets/buckets.ts'
import type { Applied, Operation } from '../idempotency/idempotency-records.ts'
import type { Authorized, RootPort } from '../ports.ts'
import { notFound } from '../resource-faults.ts'
import { deleteIn, listObjects, type ObjectList, readObject } from './objects.ts'
import { rethrowForOperator } from './operator-faults.ts'
import type { FilePorts } from './ports.ts'
import { storeFile } from './store.ts'

/** Stored as JSON with its operation record. */
export type ObjectState = ObjectField

export interface ObjectName {
  readonly bucketId: BucketId
  readonly key: string
}

export interface ChangeObjectInput extends ObjectName {
  readonly operationId: OperationId
  readonly requestId: RequestId
}

/** A change of an object, with every member that an exact repeat must equal. */
interface Intent extends ChangeObjectInput {
  readonly verb: 'put' | 'delete'
  readonly request: Json
}

type Perform = (record: RecordOperation<FileDocument>) => Promise<FileDocument>

export interface PutObjectInput extends ChangeObjectInput {
  readonly contentType: string
  readonly body: AsyncIterable<Uint8Array>
  /** Bytes that the client announced; 0 if unknown. */
  readonly bytesExpected: number
  readonly authorized: Authorized
}

export interface ConsoleObjectPorts extends RootPort {
  readonly files: FilePorts
  readonly heldAudits: HeldAudits
}

/**
 * Prefix of the IDs of records in the document store, where calls of Functions have plain Operation
 * IDs.
 */
const RECORD_PREFIX = 'object '

export class ConsoleObjects {
  readonly #ports: ConsoleObjectPorts
  /** Changes in progress, by operation ID. */
  readonly #running = new Map<OperationId, Promise<unknown>>()

  constructor(ports: ConsoleObjectPorts) {
    this.#ports = ports
  }

  /** Throws PRODUCT_NOT_FOUND and PRODUCT_UNAVAILABLE. */
  async list(
    bucketId: BucketId,
    page: { readonly prefix: string; readonly from: string; readonly limit: number },
  ): Promise<ObjectList> {
    const bucket = this.#nameOf(bucketId)
    return this.#operating(() =>
      listObjects(this.#ports.files, { bucket, delimiter: null, ...page }),
    )
  }

  /** Throws PRODUCT_NOT_FOUND, PRODUCT_INVALID and PRODUCT_UNAVAILABLE. */
  async read({ bucketId, key }: ObjectName): Promise<FileDocument> {
    requireKey(key)
    const bucket = this.#nameOf(bucketId)
    const found = await this.#operating(() => readObject(this.#ports.files, bucket, key))
    if (found === null) throw objectNotFound(key)
    return found
  }

  /**
   * Stores an object; it replaces the one with its key. Throws PRODUCT_INVALID, PRODUCT_NOT_FOUND,
   * PRODUCT_OPERATION_REUSED, PRODUCT_STATE_CONFLICT for an archived or a full bucket,
   * PLATFORM_BODY_TOO_LARGE, PRODUCT_UNAVAILABLE and what `body` and `authorized` throw.
   */
  async put(actor: Actor, input: PutObjectInput): Promise<Applied<ObjectState>> {
    const { bucketId, key, contentType, authorized } = input
    requireKey(key)
    if (!isContentType(contentType)) throw invalid('content-type', 'a media type')
    const bucket = this.#nameOf(bucketId)
    const { files } = this.#ports
    return this.#operating(async () => {
      // An exact repeat gets the first result, even if the bucket is archived or full now.
      const isRepeat = await this.isCommitted(input.operationId)
      if (!isRepeat) requireAdmission(files.buckets, bucket, BigInt(input.bytesExpected))
      const staged = await files.blobs.stage(input.bytesExpected)
      try {
        const md5 = checksumStream('md5')
        for await (const chunk of input.body) {
          await inSlices(chunk, (slice) => void md5.update(slice))
          await staged.write(chunk)
        }
        const etag = md5.digest().toHex()
        const { sha256: digest } = await staged.finish()
        // The authorization may have ended while the body arrived.
        await authorized(() => undefined)
        const request = { bucketId, key, contentType, sha256: digest }
        return await this.#once(actor, { ...input, verb: 'put', request }, (record) =>
          storeFile(files, staged, { bucket, key, contentType, uploadId: null, etag }, { record }),
        )
      } finally {
        await staged.discard()
      }
    })
  }

  /** Deletes an object, even of an archived bucket. Throws as `put` does. */
  async remove(actor: Actor, input: ChangeObjectInput): Promise<Applied<ObjectState>> {
    const { bucketId, key } = input
    requireKey(key)
    const bucket = this.#nameOf(bucketId)
    const request = { bucketId, key }
    return this.#operating(() =>
      this.#once(actor, { ...input, verb: 'delete', request }, (record) =>
        this.#ports.files.documents.change(async (transaction) => {
          const found = await deleteIn(transaction, { bucket, key })
          if (found === null) throw objectNotFound(key)
          return found
        }, record),
      ),
    )
  }

  /** Returns a committed change of an object; null if none has the ID. */
  async findOperation(operationId: OperationId): Promise<Operation | null> {
    const found = await this.#operating(() => this.#recordOf(operationId))
    return found && { ...operationOf(operationId, found), replayed: true }
  }

  /** Returns whether a change with the ID was committed. */
  async isCommitted(operationId: OperationId): Promise<boolean> {
    return (await this.#recordOf(operationId)) !== null
  }

  #recordOf(operationId: OperationId) {
    return this.#ports.files.documents.operation(RECORD_PREFIX + operationId)
  }

  #nameOf(bucketId: BucketId): string {
    const { control } = this.#ports.root
    return control.read((reader) => requireBucket(reader, bucketId)).configuration.name
  }

  async #operating<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      rethrowForOperator(error)
    }
  }

  /**
   * Performs a change unless the operation has a record. Changes with one ID run one after another.
   */
  async #once(actor: Actor, intent: Intent, perform: Perform): Promise<Applied<ObjectState>> {
    const { operationId } = intent
    const before = this.#running.get(operationId) ?? Promise.resolve()
    const own = before.then(() => this.#perform(actor, intent, perform))
    const ended = own.then(
      () => undefined,
      () => undefined,
    )
    this.#running.set(operationId, ended)
    try {
      return await own
    } finally {
      if (this.#running.get(operationId) === ended) this.#running.delete(operationId)
    }
  }

  async #perform(actor: Actor, intent: Intent, perform: Perform): Promise<Applied<ObjectState>> {
    const { operationId, requestId, bucketId, key, verb, request } = intent
    const { heldAudits, files } = this.#ports
    const { operatorId } = actor
    const fingerprint = sha256(canonicalJson({ operatorId, verb, request }))
    const earlier = await this.#recordOf(operationId)
    if (earlier !== null) {
      if (!digestEquals(earlier.fingerprint, fingerprint))
        throw new Fault('PRODUCT_OPERATION_REUSED')
      heldAudits.deliverHeld(operationId)
      const result = JSON.parse(earlier.result) as ObjectState
      return { result, operation: { ...operationOf(operationId, earlier), replayed: true } }
    }
    const record: RecordOperation<FileDocument> = (file) => ({
      operationId: RECORD_PREFIX + operationId,
      fingerprint,
      releaseId: '',
      function: `object.${verb}`,
      result: JSON.stringify(objectState(file)),
      attempts: 1,
      createdAtMicros: files.system.nowMicros(),
    })
    const subject = subjectOf(bucketId, key)
    const audited = {
      operation: `product.object.${verb}`,
      subject,
      requestId,
      operationId,
    } as const
    const isUndone = (error: unknown) => !isFault(error, 'RESULT_UNCERTAIN', 'DEADLINE_EXCEEDED')
    const file = await heldAudits.hold(actor, audited, { perform: () => perform(record), isUndone })
    const stored = (await this.#recordOf(operationId))!
    return { result: objectState(file), operation: operationOf(operationId, stored) }
  }
}

/** Throws PRODUCT_INVALID. */
function requireKey(key: string): void {
  if (!isObjectKey(key)) throw invalid('key', '1 to 1,024 bytes of UTF-8 without NUL')
}

/** An audit record names at most 512 characters. */
function subjectOf(bucketId: BucketId, key: string): string {
  const subject = `${bucketId}/${key}`
  return subject.length <= 512 ? subject : `${bucketId}/sha256:${sha256Hex(key)}`
}

export function objectState({
  key,
  fileId,
  contentType,
  size,
  sha256: digest,
  createdAtMicros,
}: FileDocument): ObjectState {
  const times = { createdAtMicros: String(createdAtMicros) }
  return {
    key: key!,
    fileId: fileId as Id<'fil'>,
    contentType,
    size: String(size),
    sha256: digest,
    ...times,
  }
}

function operationOf(
  operationId: OperationId,
  record: {
    readonly function: string
    readonly commitSequence: number | null
    readonly createdAtMicros: bigint
  },
): Operation {
  const { function: kind, commitSequence, createdAtMicros } = record
  const revision = BigInt(commitSequence ?? 0)
  return { operationId, kind, replayed: false, revision, createdAtMicros }
}

function objectNotFound(key: string): Fault {
  return notFound({
    path: 'key',
    rule: 'an object of the bucket',
    detail: `object ${key.slice(0, 100)}`,
  })
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
