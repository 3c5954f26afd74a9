/** Scheduled work for operators: lists and cancellations. */
import type { Engine } from '../../engine/engine.ts'
import type { ScheduledSummary } from '../../engine/scheduled-work/scheduled-documents.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { requireRecent } from '../../system/client-clock.ts'
import {
  type Id,
  idMillis,
  type OperationId,
  type ReleaseId,
  type RequestId,
} from '../../value/ids.ts'
import type { ScheduledPage } from '../../wire/schedules.ts'
import {
  type Applied,
  applyOnce,
  type Intent,
  isApplied,
} from '../idempotency/idempotency-records.ts'
import type { ChangePorts } from '../ports.ts'

interface SchedulePorts {
  readonly engine: { readonly scheduler: Pick<Engine['scheduler'], 'list' | 'cancel'> }
}

/** Stored as JSON with its idempotency record, so times are decimal text. */
export type WorkState = ScheduledPage['items'][number]

export async function listScheduled(
  { engine }: SchedulePorts,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<{ readonly items: readonly WorkState[]; readonly nextId: string | null }> {
  const { items, nextId } = await failingAsProduct(() => engine.scheduler.list(after, limit))
  return { items: items.map(workState), nextId }
}

export interface CancelScheduledInput {
  readonly scheduledId: string
  readonly operationId: OperationId
  readonly requestId: RequestId
}

/**
 * Cancels pending work. Rejects with PRODUCT_NOT_FOUND, with PRODUCT_STATE_CONFLICT for work that
 * runs or has ended, with PRODUCT_OPERATION_REUSED, PRODUCT_INVALID and PRODUCT_UNAVAILABLE.
 */
export async function cancelScheduled(
  ports: SchedulePorts & ChangePorts,
  actor: Actor,
  { scheduledId, operationId, requestId }: CancelScheduledInput,
): Promise<Applied<WorkState>> {
  const changedAtMicros = operationMicros(ports, operationId)
  // A crash may have lost the record of a cancellation; canceling canceled work again succeeds.
  const canceled = isApplied(ports, operationId)
    ? null
    : await failingAsProduct(() => ports.engine.scheduler.cancel(scheduledId))
  const intent: Intent = {
    operationId,
    kind: 'schedule.cancel' as const,
    request: { scheduledId },
    changedAtMicros,
    subject: scheduledId,
    requestId,
  }
  return applyOnce(ports, actor, intent, () => {
    if (canceled === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: scheduledId })
    const { work } = canceled
    if (work.state !== 'canceled') {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${scheduledId} is ${work.state}` })
    }
    // Work is canceled once.
    return { result: workState(work), revision: 1n }
  })
}

/**
 * Returns the time of a change whose request has no body: the time in its Operation ID. Throws
 * PRODUCT_INVALID if that is not recent, unless the ID was used.
 */
export function operationMicros(ports: ChangePorts, operationId: OperationId): bigint {
  const micros = BigInt(idMillis(operationId)) * 1_000n
  if (!isApplied(ports, operationId)) requireRecent(ports.system, micros, 'operationId')
  return micros
}

/** Translates failures of the document store into PRODUCT_UNAVAILABLE. */
export async function failingAsProduct<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (cause) {
    if (isFault(cause, 'PRODUCT_UNAVAILABLE')) throw cause
    throw new Fault('PRODUCT_UNAVAILABLE', { detail: 'scheduled work', cause })
  }
}

export function workState(work: ScheduledSummary): WorkState {
  const { function: name, state, attempts, lastErrorCode, source, http } = work
  return {
    scheduledId: work.scheduledId as Id<'sch'>,
    releaseId: work.releaseId as ReleaseId,
    function: name,
    state,
    attempts,
    lastErrorCode,
    source: source === 'cron' ? source : 'function',
    ...(http !== undefined && { http: { mount: http.mount, route: http.route } }),
    dueAtMicros: String(work.dueAtMicros),
  }
}
