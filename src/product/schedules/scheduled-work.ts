/** Scheduled work as operators see and cancel it. */
import type { ScheduledSummary } from '../../engine/scheduling/scheduled-documents.ts'
import type { WorkList } from '../../engine/scheduling/scheduler.ts'
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import type { Product } from '../product.ts'

type SchedulePorts = Pick<Product, 'engine' | 'root' | 'audit'>

export function listScheduled(
  { engine }: SchedulePorts,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<WorkList> {
  return failingAsProduct(() => engine.scheduler.list(after, limit))
}

export interface CancelScheduledInput {
  readonly scheduledId: string
  readonly operationId: OperationId
  readonly requestId: RequestId
}

/**
 * Cancels pending work; a repeat changes nothing. Rejects with PRODUCT_NOT_FOUND, with
 * PRODUCT_STATE_CONFLICT for work that runs or has ended, and with PRODUCT_UNAVAILABLE.
 */
export async function cancelScheduled(
  { engine, root, audit }: SchedulePorts,
  actor: Actor,
  { scheduledId, operationId, requestId }: CancelScheduledInput,
): Promise<ScheduledSummary> {
  const canceled = await failingAsProduct(() => engine.scheduler.cancel(scheduledId))
  if (canceled === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: scheduledId })
  const { work, hasChanged } = canceled
  if (work.state !== 'canceled') {
    throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${scheduledId} is ${work.state}` })
  }
  if (hasChanged) {
    const operation = 'product.schedule.cancel'
    root.control.transaction((tx) =>
      audit.append(tx, actor, { operation, subject: scheduledId, requestId, operationId }),
    )
    audit.deliver()
  }
  return work
}

/** Reports failures of the document store by the code of this origin. */
async function failingAsProduct<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (cause) {
    throw new Fault('PRODUCT_UNAVAILABLE', { detail: 'scheduled work', cause })
  }
}
