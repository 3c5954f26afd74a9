/** Scheduled work as documents: how it is read, found and written in transactions of the server. */
import type { StoredDocument } from '../../documents/store.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { idMillis } from '../../value/ids.ts'
import {
  SCHEDULED_DOCUMENTS,
  type ScheduledSource,
  type ScheduledState,
} from '../../value/scheduling/scheduled-work.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { Timestamp, type Value, type ValueObject } from '../../value/values.ts'
import type { Transaction } from '../transactions/transaction.ts'

/** A call to run at a time. */
export interface WorkFields {
  readonly function: string
  readonly kind: 'mutation' | 'action'
  /** The Release of its creator, which executes it. */
  readonly releaseId: string
  /** Stored JSON of the checked arguments. */
  readonly argumentsText: string
  readonly source: ScheduledSource
  /** Name of the Cron; null for work of another source. */
  readonly cron: string | null
  /** The request that a delivery is; absent for work of another source. */
  readonly http?: DeliveredRequest
  /** True if a request may wait for the result of the work. */
  readonly keepsResult?: true
  readonly dueAtMicros: bigint
}

/** A request of another service, without its content. */
export interface DeliveredRequest {
  readonly mount: string
  readonly route: string
  /** The ID of the event, as the service or `once` names it. */
  readonly event: string
  readonly method: string
  /** The path below the mount. */
  readonly path: string
  /** Bytes of the body. */
  readonly bytes: number
}

export interface ScheduledWork extends WorkFields {
  readonly scheduledId: string
  readonly createdAtMicros: bigint
  readonly state: ScheduledState
  /** Runs that were started, the completed one included. */
  readonly attempts: number
  readonly lastErrorCode: string | null
  /** Reason of the newest failure of a delivery, as the log has it; null for other work. */
  readonly lastErrorMessage: string | null
  /** Null until it has succeeded, failed or was canceled. */
  readonly finishedAtMicros: bigint | null
  /** ID of the request that made failed work run again last; null for none. */
  readonly rerunBy: string | null
}

/** Finished work as a request that waited for it sees it. */
export interface EndedWork {
  readonly state: Finish['state']
  readonly function: string
  readonly releaseId: string
  /** Tagged JSON; null for a failure, for work that keeps no result, and for a longer one. */
  readonly resultText: string | null
}

/**
 * Characters of the result that work keeps, in tagged JSON.
 * @limit HTTP mounts: characters of the result of a handler that answers its delivery, in tagged
 * JSON; a longer one is not kept, and the answer is 202
 */
export const KEPT_RESULT_CHARACTERS_MAX = 64 * 1024

/** Fields of a document, by name. */
type Fields = Readonly<Record<string, Value>>

/** Work without its arguments, which may be long and secret. */
export type ScheduledSummary = Omit<ScheduledWork, 'argumentsText'>

export function summaryOf({ argumentsText: _, ...work }: ScheduledWork): ScheduledSummary {
  return work
}

/**
 * Characters of stored JSON up to which a delivery that succeeded keeps its headers and its body:
 * nothing runs it again.
 * @limit HTTP mounts: headers and body of a delivery that are kept once it has succeeded
 */
export const SUCCEEDED_CHARACTERS_MAX = 4 * 1024
/** The arguments of a delivery whose content is no longer stored. */
const NO_ARGUMENTS = '{}'

/** Returns whether the headers and the body of a delivery are still stored. */
export function hasContent({ argumentsText }: Pick<ScheduledWork, 'argumentsText'>): boolean {
  return argumentsText !== NO_ARGUMENTS
}

/** Inserts pending work and returns its ID. */
export function insertWork(transaction: Transaction, work: WorkFields): MaybePromise<string> {
  return transaction.insert(SCHEDULED_DOCUMENTS, storedJson(pendingFields(work)))
}

/** Inserts pending work with an ID that the caller chose. Throws OperationError where it exists. */
export function insertWorkAs(
  transaction: Transaction,
  id: string,
  work: WorkFields,
): MaybePromise<void> {
  // The order of the IDs is that of the creation.
  const createdAtMicros = BigInt(idMillis(id)) * 1_000n
  const fields = new Map(Object.entries(pendingFields(work)))
  return transaction.insertAs(id, { createdAtMicros, fields })
}

function pendingFields(work: WorkFields): Fields {
  const { function: name, kind, releaseId, argumentsText, source, cron, dueAtMicros } = work
  const { http, keepsResult } = work
  return {
    function: name,
    kind,
    releaseId,
    arguments: argumentsText,
    source,
    cron,
    ...(http !== undefined && { ...http, bytes: BigInt(http.bytes) }),
    ...(keepsResult && { keepsResult }),
    state: 'pending',
    dueAt: new Timestamp(dueAtMicros),
    attempts: 0n,
    lastErrorCode: null,
    finishedAt: null,
  }
}

/** Returns the work; null if there is none. `id` is a canonical ID of scheduled work. */
export function readWork(transaction: Transaction, id: string): MaybePromise<ScheduledWork | null> {
  return andThen(transaction.get(id), (found) => (found === null ? null : workOf(found)))
}

/** Marks pending work as running, which is one more attempt. */
export function startWork(
  transaction: Transaction,
  { scheduledId, attempts }: ScheduledWork,
): MaybePromise<void> {
  return patch(transaction, scheduledId, { state: 'running', attempts: BigInt(attempts + 1) })
}

/**
 * Marks pending work as succeeded, which is one more attempt. Throws what `notPending` returns
 * where it is not pending. Every run of a Mutation does this, so the fields are decoded once.
 */
export function succeedPending(
  transaction: Transaction,
  id: string,
  { atMicros, notPending }: { readonly atMicros: bigint; readonly notPending: () => Error },
): MaybePromise<void> {
  return andThen(transaction.get(id), (found) => {
    if (found === null) throw notPending()
    return transaction.update(id, (fields) => {
      if (stateOf(fields) !== 'pending') throw notPending()
      const attempts = Number(fields.get('attempts') as bigint) + 1
      const finish = { state: 'succeeded', attempts, errorCode: null, atMicros } as const
      return finishedFields(fields, finish)
    })
  })
}

/** Keeps the result of work that ends in this transaction, unless it is too long. */
export function keepResult(
  transaction: Transaction,
  id: string,
  resultText: string,
): MaybePromise<void> {
  if (resultText.length > KEPT_RESULT_CHARACTERS_MAX) return
  return patch(transaction, id, { result: resultText })
}

export interface Finish {
  readonly state: 'succeeded' | 'failed' | 'canceled'
  readonly attempts: number
  readonly errorCode: string | null
  /** Reason of the failure, which deliveries keep. */
  readonly errorMessage?: string | null
  readonly atMicros: bigint
}

export function finishWork(
  transaction: Transaction,
  id: string,
  finish: Finish,
): MaybePromise<void> {
  return transaction.update(id, (fields) => finishedFields(fields, finish))
}

function finishedFields(fields: ValueObject, finish: Finish): ValueObject {
  const { state, attempts, errorCode, atMicros } = finish
  const next = new Map(fields)
  next.set('state', state)
  next.set('attempts', BigInt(attempts))
  next.set('lastErrorCode', errorCode)
  next.set('finishedAt', new Timestamp(atMicros))
  if (next.has('mount')) finishDelivery(next, finish)
  return next
}

/** Marks a delivery that failed, for the index of failures, and drops what no run needs again. */
function finishDelivery(fields: Map<string, Value>, { state, errorMessage = null }: Finish): void {
  if (state === 'failed') fields.set('hasFailed', true)
  if (errorMessage !== null) fields.set('lastErrorMessage', errorMessage)
  if (state !== 'succeeded') return
  fields.delete('lastErrorMessage')
  const { length } = fields.get('arguments') as string
  if (length > SUCCEEDED_CHARACTERS_MAX) fields.set('arguments', NO_ARGUMENTS)
}

/** Returns work that did not succeed to the queue, for a run at another time. */
export function postponeWork(
  transaction: Transaction,
  id: string,
  next: Pick<Finish, 'attempts' | 'errorCode' | 'errorMessage'> & { readonly dueAtMicros: bigint },
): MaybePromise<void> {
  const { attempts, errorCode, errorMessage = null, dueAtMicros } = next
  return transaction.update(id, (fields) => {
    const isExplained = errorMessage !== null && fields.has('mount')
    return withFields(fields, {
      state: 'pending',
      attempts: BigInt(attempts),
      lastErrorCode: errorCode,
      dueAt: new Timestamp(dueAtMicros),
      ...(isExplained && { lastErrorMessage: errorMessage }),
    })
  })
}

/** Cancels pending work. Returns whether that prevented its run. */
export function cancelWork(
  transaction: Transaction,
  id: string,
  atMicros: bigint,
): MaybePromise<boolean> {
  return andThen(readWork(transaction, id), (work): MaybePromise<boolean> => {
    if (work?.state !== 'pending') return false
    const { attempts, lastErrorCode } = work
    const finish = { attempts, errorCode: lastErrorCode, atMicros }
    return andThen(finishWork(transaction, id, { state: 'canceled', ...finish }), () => true)
  })
}

/** The next run of failed work, which may be of another Function in another Release. */
export interface Rerun extends Pick<WorkFields, 'function' | 'kind' | 'releaseId' | 'dueAtMicros'> {
  /** ID of the request, by which its repeat is known; null for one without repeats. */
  readonly rerunBy: string | null
}

/**
 * Returns failed work to the queue. The attempts are counted on, and the code of the newest failure
 * stays. Returns false for work in another state, for a repeat of the request that made it run
 * last, and for none; the work is left alone then.
 */
export function rerunWork(
  transaction: Transaction,
  id: string,
  { function: name, kind, releaseId, dueAtMicros, rerunBy }: Rerun,
): MaybePromise<boolean> {
  return andThen(readWork(transaction, id), (work): MaybePromise<boolean> => {
    if (work?.state !== 'failed') return false
    if (rerunBy !== null && work.rerunBy === rerunBy) return false
    const next = { function: name, kind, releaseId, dueAt: new Timestamp(dueAtMicros) }
    const again = { state: 'pending', finishedAt: null, ...(rerunBy !== null && { rerunBy }) }
    const update = (fields: ValueObject) => {
      const pending = new Map(withFields(fields, { ...next, ...again }))
      pending.delete('hasFailed')
      return pending
    }
    return andThen(transaction.update(id, update), () => true)
  })
}

/** Reads the work of a stored document. */
export function workOf({ id, createdAtMicros, text }: StoredDocument): ScheduledWork {
  return workOfFields({ id, createdAtMicros, fields: decodeStored(text) as ValueObject })
}

/** Returns the work that a commit has stored, from the fields of its change. */
export function workOfCommit(id: string, fields: ValueObject): ScheduledWork {
  // The time of the ID is that of the document.
  return workOfFields({ id, createdAtMicros: BigInt(idMillis(id)) * 1_000n, fields })
}

function workOfFields({
  id,
  createdAtMicros,
  fields,
}: {
  readonly id: string
  readonly createdAtMicros: bigint
  readonly fields: ValueObject
}): ScheduledWork {
  const finishedAt = fields.get('finishedAt') as Timestamp | null
  const http = requestOf(fields)
  return {
    scheduledId: id,
    createdAtMicros,
    function: fields.get('function') as string,
    kind: fields.get('kind') as WorkFields['kind'],
    releaseId: fields.get('releaseId') as string,
    argumentsText: fields.get('arguments') as string,
    source: fields.get('source') as ScheduledSource,
    cron: fields.get('cron') as string | null,
    ...(http !== null && { http }),
    ...(fields.get('keepsResult') === true && { keepsResult: true }),
    state: stateOf(fields),
    dueAtMicros: dueAtOf(fields),
    attempts: Number(fields.get('attempts') as bigint),
    lastErrorCode: fields.get('lastErrorCode') as string | null,
    lastErrorMessage: (fields.get('lastErrorMessage') as string | undefined) ?? null,
    finishedAtMicros: finishedAt === null ? null : finishedAt.micros,
    rerunBy: (fields.get('rerunBy') as string | undefined) ?? null,
  }
}

function requestOf(fields: ValueObject): DeliveredRequest | null {
  const mount = fields.get('mount') as string | undefined
  if (mount === undefined) return null
  return {
    mount,
    route: fields.get('route') as string,
    event: fields.get('event') as string,
    method: fields.get('method') as string,
    path: fields.get('path') as string,
    bytes: Number(fields.get('bytes') as bigint),
  }
}

/** Returns the work as `EndedWork`; null if it has not ended, and for null. */
export function endedWorkOf(stored: StoredDocument | null): EndedWork | null {
  if (stored === null) return null
  const fields = decodeStored(stored.text) as ValueObject
  const state = stateOf(fields)
  if (state === 'pending' || state === 'running') return null
  return {
    state,
    function: fields.get('function') as string,
    releaseId: fields.get('releaseId') as string,
    resultText: (fields.get('result') as string | undefined) ?? null,
  }
}

export function stateOf(fields: ValueObject): ScheduledState {
  return fields.get('state') as ScheduledState
}

export function dueAtOf(fields: ValueObject): bigint {
  return (fields.get('dueAt') as Timestamp).micros
}

function patch(transaction: Transaction, id: string, changed: Fields): MaybePromise<void> {
  return transaction.update(id, (fields) => withFields(fields, changed))
}

function withFields(fields: ValueObject, changed: Fields): ValueObject {
  return new Map([...fields, ...Object.entries(changed)])
}

/** Converts fields as a transaction takes them from a runner. */
function storedJson(fields: Fields): unknown {
  return JSON.parse(encodeStored(new Map(Object.entries(fields))))
}
