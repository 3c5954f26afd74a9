/** Rows of cron_activations: what operators decided about Crons, by name. */
import type { Activation } from '../../value/scheduling/crons.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface CronActivation {
  /** 0 before the first decision. */
  readonly revision: bigint
  readonly activation: Activation
}

interface Row {
  revision: number
  activation: Activation
}

/** Returns revision 0, enabled, where no operator has decided. */
export function findCronActivation(reader: ControlReader, name: string): CronActivation {
  const row = reader.get<Row>(
    'select revision, activation from cron_activations where name = ?',
    name,
  )
  if (row === null) return { revision: 0n, activation: 'enabled' }
  return { revision: BigInt(row.revision), activation: row.activation }
}

export function putCronActivation(
  tx: ControlTx,
  name: string,
  { revision, activation }: CronActivation,
  changedAtMicros: bigint,
): void {
  tx.run(
    `insert into cron_activations (name, activation, revision, changed_at) values (?, ?, ?, ?)
      on conflict (name) do update set activation = excluded.activation,
        revision = excluded.revision, changed_at = excluded.changed_at`,
    name,
    activation,
    revision,
    changedAtMicros,
  )
}
