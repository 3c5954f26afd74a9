/** The states of Crons as documents: when each one is due next, and its newest run. */
import type { StoredDocument } from '../../../documents/store.ts'
import { andThen, type MaybePromise } from '../../../system/maybe-promise.ts'
import { CRON_DOCUMENTS } from '../../../value/scheduling/scheduled-work.ts'
import { decodeStored, encodeStored } from '../../../value/stored.ts'
import { Timestamp, type Value, type ValueObject } from '../../../value/values.ts'
import type { Transaction } from '../../transactions/transaction.ts'

export interface CronState {
  /** The declared times and the revision of the activation that `nextAtMicros` follows. */
  readonly basis: string
  readonly nextAtMicros: bigint | null
  /** The newest time that has come, whether it ran or was skipped; null before the first. */
  readonly lastDueAtMicros: bigint | null
  /** The time at which the newest run was scheduled; null before the first. */
  readonly lastRunAtMicros: bigint | null
  /** The work of the newest run; null before the first. */
  readonly scheduledId: string | null
  /** Times that have come and wait for the end of the newest run. */
  readonly queued: number
}

export interface StoredCronState extends CronState {
  readonly id: string
  readonly name: string
}

/** Returns the state; null if the Cron was never in force. */
export function readCronState(
  transaction: Transaction,
  name: string,
): MaybePromise<StoredCronState | null> {
  const range = { table: CRON_DOCUMENTS, index: 'byName', equal: [name] } as const
  return andThen(transaction.range({ ...range, order: 'asc', limit: 1 }), ({ documents }) =>
    documents[0] === undefined ? null : stateOf(documents[0]),
  )
}

/** Inserts the state, or replaces the one that `stored` is. */
export async function writeCronState(
  transaction: Transaction,
  name: string,
  { stored, state }: { readonly stored: StoredCronState | null; readonly state: CronState },
): Promise<void> {
  const fields = storedJson({
    name,
    basis: state.basis,
    scheduledId: state.scheduledId,
    nextAt: timestamp(state.nextAtMicros),
    lastDueAt: timestamp(state.lastDueAtMicros),
    lastRunAt: timestamp(state.lastRunAtMicros),
    queued: BigInt(state.queued),
  })
  if (stored === null) await transaction.insert(CRON_DOCUMENTS, fields)
  else await transaction.replace(stored.id, fields)
}

export function stateOf({ id, text }: StoredDocument): StoredCronState {
  const fields = decodeStored(text) as ValueObject
  const micros = (name: string) => (fields.get(name) as Timestamp | null)?.micros ?? null
  return {
    id,
    name: fields.get('name') as string,
    basis: fields.get('basis') as string,
    nextAtMicros: micros('nextAt'),
    lastDueAtMicros: micros('lastDueAt'),
    lastRunAtMicros: micros('lastRunAt'),
    scheduledId: fields.get('scheduledId') as string | null,
    queued: Number(fields.get('queued') as bigint),
  }
}

function timestamp(micros: bigint | null): Timestamp | null {
  return micros === null ? null : new Timestamp(micros)
}

function storedJson(fields: Readonly<Record<string, Value>>): unknown {
  return JSON.parse(encodeStored(new Map(Object.entries(fields))))
}
