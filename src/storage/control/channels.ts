/** Rows of channels and channel_history: the present and earlier bindings of each Channel. */
import type { OperatorId, ReleaseId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'

export interface Channel {
  readonly name: string
  readonly releaseId: ReleaseId
  /** null at the first binding. */
  readonly previousReleaseId: ReleaseId | null
  /** Starts at 1 and grows by one with each binding. */
  readonly revision: bigint
  readonly changedAtMicros: bigint
}

interface Row {
  name: string
  release_id: ReleaseId
  previous_release_id: ReleaseId | null
  revision: number
  changed_at: number
}

const CHANNEL = `select c.name, c.release_id, h.previous_release_id, c.revision, c.changed_at
   from channels c
   join channel_history h on h.channel = c.name and h.revision = c.revision`

export function findChannel(reader: ControlReader, name: string): Channel | null {
  const row = reader.get<Row>(`${CHANNEL} where c.name = ?`, name)
  return row === null ? null : toChannel(row)
}

export function listChannels(reader: ControlReader): Channel[] {
  return reader.all<Row>(`${CHANNEL} order by c.name`).map(toChannel)
}

/** Returns the Releases that the Channel was bound to before, newest first. */
export function listChannelHistory(
  reader: ControlReader,
  name: string,
  limit: number,
): ReleaseId[] {
  return reader
    .all<{ previous_release_id: ReleaseId }>(
      `select previous_release_id from channel_history
        where channel = ? and previous_release_id is not null
        order by revision desc limit ?`,
      name,
      limit,
    )
    .map((row) => row.previous_release_id)
}

/** Returns whether the Channel was ever bound to the Release. */
export function channelHadRelease(reader: ControlReader, name: string, id: ReleaseId): boolean {
  const row = reader.get(
    'select 1 from channel_history where channel = ? and release_id = ? limit 1',
    name,
    id,
  )
  return row !== null
}

/** Binds the Channel, which may be new, and records the binding in its history. */
export function insertBinding(
  tx: ControlTx,
  binding: Channel & { readonly operatorId: OperatorId },
): void {
  tx.run(
    `insert into channels (name, release_id, revision, changed_at) values (?, ?, ?, ?)
     on conflict (name) do update
        set release_id = excluded.release_id,
            revision = excluded.revision,
            changed_at = excluded.changed_at`,
    binding.name,
    binding.releaseId,
    binding.revision,
    binding.changedAtMicros,
  )
  tx.run(
    `insert into channel_history (channel, revision, release_id, previous_release_id, operator_id,
            changed_at)
     values (?, ?, ?, ?, ?, ?)`,
    binding.name,
    binding.revision,
    binding.releaseId,
    binding.previousReleaseId,
    binding.operatorId,
    binding.changedAtMicros,
  )
}

function toChannel(row: Row): Channel {
  return {
    name: row.name,
    releaseId: row.release_id,
    previousReleaseId: row.previous_release_id,
    revision: BigInt(row.revision),
    changedAtMicros: BigInt(row.changed_at),
  }
}
