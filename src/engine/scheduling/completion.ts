/** The completion of a scheduled Mutation, which is a write of its own transaction. */
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { finishWork, readWork } from './scheduled-documents.ts'

/** Tells that work was canceled, or has ended, before a run of it began. */
export class NotPendingError extends Error {
  constructor(scheduledId: string) {
    super(`${scheduledId} is not pending`)
    this.name = 'NotPendingError'
  }
}

/**
 * Marks the work as succeeded, before its code runs: the commit makes both durable or neither, and
 * a change of the work meanwhile is a conflict. Throws NotPendingError, so that no work runs twice.
 */
export function completeWork(
  transaction: Transaction,
  scheduledId: string,
  { nowMicros }: { readonly nowMicros: bigint },
): MaybePromise<void> {
  const server = transaction.asServer()
  return andThen(readWork(server, scheduledId), (work) => {
    if (work?.state !== 'pending') throw new NotPendingError(scheduledId)
    const { attempts } = work
    const finish = { attempts: attempts + 1, errorCode: null, atMicros: nowMicros }
    return finishWork(server, scheduledId, { state: 'succeeded', ...finish })
  })
}
