/** The completion of a scheduled Mutation, which is a write of its own transaction. */
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { succeedPending } from './scheduled-documents.ts'

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
  return succeedPending(transaction.asServer(), scheduledId, {
    atMicros: nowMicros,
    notPending: () => new NotPendingError(scheduledId),
  })
}
