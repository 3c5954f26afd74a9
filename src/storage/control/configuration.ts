/** Rows of configuration and configuration_history. Callers seal secrets and apply the rules. */
import type { OperatorId } from '../../value/ids.ts'
import type { Sealed } from '../sealing.ts'
import type { ControlReader, ControlTx } from './database.ts'

export type ConfigurationKind = 'variable' | 'secret'

export interface ConfigurationEntry {
  readonly name: string
  /** The revision of the change that wrote the value. */
  readonly revision: bigint
  readonly createdAtMicros: bigint
  readonly updatedAtMicros: bigint
  readonly content:
    | { readonly kind: 'variable'; readonly value: string }
    | { readonly kind: 'secret'; readonly sealed: Sealed }
}

export interface ConfigurationChange {
  /** Revision of the whole configuration after the change, from 1. */
  readonly revision: bigint
  readonly name: string
  readonly kind: ConfigurationKind
  readonly action: 'set' | 'delete'
  readonly operatorId: OperatorId
  readonly changedAtMicros: bigint
}

interface EntryRow {
  name: string
  value: string | null
  sealed: Uint8Array | null
  key_id: string | null
  revision: number
  created_at: number
  updated_at: number
}

interface ChangeRow {
  revision: number
  name: string
  kind: ConfigurationKind
  action: 'set' | 'delete'
  operator_id: OperatorId
  changed_at: number
}

const COLUMNS = 'name, value, sealed, key_id, revision, created_at, updated_at'

/** Returns 0 before the first change. */
export function getConfigurationRevision(reader: ControlReader): bigint {
  const row = reader.get<{ revision: number | null }>(
    'select max(revision) as revision from configuration_history',
  )
  return BigInt(row?.revision ?? 0)
}

export function findEntry(reader: ControlReader, name: string): ConfigurationEntry | null {
  const row = reader.get<EntryRow>(`select ${COLUMNS} from configuration where name = ?`, name)
  return row === null ? null : toEntry(row)
}

/** Returns all entries, sorted by name. */
export function listEntries(reader: ControlReader): ConfigurationEntry[] {
  return reader.all<EntryRow>(`select ${COLUMNS} from configuration order by name`).map(toEntry)
}

/** Returns the names whose value an operator has set, sorted. */
export function listNamesSetBy(reader: ControlReader, operatorId: OperatorId): string[] {
  return reader
    .all<{ name: string }>(
      `select entry.name from configuration as entry
         join configuration_history as change on change.revision = entry.revision
        where change.operator_id = ? order by entry.name`,
      operatorId,
    )
    .map(({ name }) => name)
}

export function countEntries(reader: ControlReader): number {
  return reader.get<{ count: number }>('select count(*) as count from configuration')!.count
}

/** Inserts the entry or replaces the one with its name. */
export function insertEntry(tx: ControlTx, entry: ConfigurationEntry): void {
  const { content } = entry
  const sealed = content.kind === 'secret' ? content.sealed : null
  tx.run(
    `insert or replace into configuration (name, kind, value, sealed, key_id, revision,
            created_at, updated_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    entry.name,
    content.kind,
    content.kind === 'variable' ? content.value : null,
    sealed?.bytes ?? null,
    sealed?.keyId ?? null,
    entry.revision,
    entry.createdAtMicros,
    entry.updatedAtMicros,
  )
}

/** Replaces a sealed secret by the same secret under another key. */
export function markResealed(tx: ControlTx, name: string, sealed: Sealed): void {
  tx.run(
    'update configuration set sealed = ?, key_id = ? where name = ?',
    sealed.bytes,
    sealed.keyId,
    name,
  )
}

export function deleteEntry(tx: ControlTx, name: string): void {
  tx.run('delete from configuration where name = ?', name)
}

export function insertChange(tx: ControlTx, change: ConfigurationChange): void {
  tx.run(
    `insert into configuration_history (revision, name, kind, action, operator_id, changed_at)
     values (?, ?, ?, ?, ?, ?)`,
    change.revision,
    change.name,
    change.kind,
    change.action,
    change.operatorId,
    change.changedAtMicros,
  )
}

/** Returns the newest changes, at most `limit`; only those before a revision if one is given. */
export function listChanges(
  reader: ControlReader,
  { before, limit }: { readonly before: bigint | null; readonly limit: number },
): ConfigurationChange[] {
  return reader
    .all<ChangeRow>(
      `select revision, name, kind, action, operator_id, changed_at from configuration_history
        where ?1 is null or revision < ?1
        order by revision desc limit ?2`,
      before,
      limit,
    )
    .map((row) => ({
      revision: BigInt(row.revision),
      name: row.name,
      kind: row.kind,
      action: row.action,
      operatorId: row.operator_id,
      changedAtMicros: BigInt(row.changed_at),
    }))
}

function toEntry(row: EntryRow): ConfigurationEntry {
  return {
    name: row.name,
    revision: BigInt(row.revision),
    createdAtMicros: BigInt(row.created_at),
    updatedAtMicros: BigInt(row.updated_at),
    content:
      row.value === null
        ? { kind: 'secret', sealed: { keyId: row.key_id!, bytes: row.sealed! } }
        : { kind: 'variable', value: row.value },
  }
}
