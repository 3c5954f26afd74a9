/** Performs the operations of `ctx.scheduler` in a transaction, whose mistakes are the author's. */
import { Fault } from '../../errors/fault.ts'
import type { ScheduleOperation } from '../../runner/protocol/schedule-operations.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { admit } from '../../value/identities.ts'
import { isId } from '../../value/ids.ts'
import {
  DELAY_MILLIS_MAX,
  PENDING_MAX,
  SCHEDULED_DOCUMENTS,
  SCHEDULES_MAX,
} from '../../value/scheduling/scheduled-work.ts'
import { OperationError } from '../calls/operation-error.ts'
import { calleeArguments } from '../releases/callee-arguments.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { PendingWork } from './pending-work.ts'
import { cancelWork, insertWork, readWork, type WorkFields } from './scheduled-documents.ts'

type Schedule = Extract<ScheduleOperation, readonly ['schedule', ...unknown[]]>

interface SchedulingCall {
  readonly prepared: PreparedRelease
  readonly nowMicros: bigint
}

/** Returns whether the operation is one of `ctx.scheduler`. */
export function isScheduleOperation(
  operation: readonly [string, ...unknown[]],
): operation is ScheduleOperation {
  const [type] = operation
  return type === 'schedule' || type === 'cancelScheduled' || type === 'getScheduled'
}

/**
 * Throws LIMIT_EXCEEDED where the call, or the Environment, has scheduled too much. `created`
 * counts the piece that is about to be scheduled. The bound of the Environment counts committed
 * work, so concurrent calls may pass it by what they schedule meanwhile.
 */
export function checkScheduleLimits(created: number, pending: PendingWork): void {
  if (created > SCHEDULES_MAX) {
    throw new Fault('LIMIT_EXCEEDED', { detail: `schedules of one call: ${SCHEDULES_MAX}` })
  }
  if (pending.count + created > PENDING_MAX) {
    throw new Fault('LIMIT_EXCEEDED', { detail: `pending scheduled work: ${PENDING_MAX}` })
  }
}

/**
 * Returns the requested work. Throws OperationError for a Function that does not exist, that is a
 * Query, that needs an identity or does not take the arguments, and for a time out of bounds.
 */
export function requestedWork(
  { prepared, nowMicros }: SchedulingCall,
  [, kind, time, name, json]: Schedule,
): WorkFields {
  const method = kind === 'after' ? 'runAfter' : 'runAt'
  const definition = prepared.release.functions.get(name)
  const shown = name.slice(0, 100)
  if (definition === undefined) {
    throw invalid(method, `there is no Function "${shown}" in this Release`)
  }
  if (definition.kind === 'query') {
    throw invalid(method, `"${shown}" is a Query; schedule a Mutation or an Action`)
  }
  if (admit(definition.auth, null) !== null) {
    const rule = `requires a ${definition.auth}, and scheduled work has no identity`
    throw invalid(method, `"${shown}" ${rule}`)
  }
  const dueAtMicros = kind === 'after' ? nowMicros + BigInt(time) * 1000n : BigInt(time)
  if (dueAtMicros > nowMicros + BigInt(DELAY_MILLIS_MAX) * 1000n) {
    throw invalid(method, 'the time is more than 10 years ahead', 'RangeError')
  }
  return {
    function: name,
    kind: definition.kind,
    releaseId: prepared.release.releaseId,
    argumentsText: calleeArguments(prepared, definition, json),
    source: 'function',
    cron: null,
    dueAtMicros,
  }
}

/**
 * Performs the operation in a transaction of the server and returns Stored JSON. `work` is that of
 * `requestedWork` for `schedule`.
 */
export function performSchedule(
  transaction: Transaction,
  operation: ScheduleOperation,
  { work, nowMicros }: { readonly work: WorkFields | null; readonly nowMicros: bigint },
): MaybePromise<string> {
  if (operation[0] === 'schedule') {
    return andThen(insertWork(transaction, work!), JSON.stringify)
  }
  const [type, id] = operation
  const method = type === 'getScheduled' ? 'get' : 'cancel'
  if (!isId(SCHEDULED_DOCUMENTS, id)) {
    throw invalid(method, `"${id.slice(0, 100)}" is not the ID of scheduled work`)
  }
  if (type === 'cancelScheduled') {
    return andThen(cancelWork(transaction, id, nowMicros), JSON.stringify)
  }
  return andThen(readWork(transaction, id), (found) => {
    if (found === null) return 'null'
    const { scheduledId, function: name, state, attempts, dueAtMicros, lastErrorCode } = found
    const dueAt = { $t: String(dueAtMicros) }
    const shown = { id: scheduledId, function: name, state, attempts, dueAt, lastErrorCode }
    return JSON.stringify(shown)
  })
}

function invalid(method: string, rule: string, name = 'TypeError'): OperationError {
  return new OperationError(name, `ctx.scheduler.${method}: ${rule}`)
}
