/**
 * Rebuilds the state at a sequence from the segments of a backup, by the rules of
 * docs/backups-format.md. A restore is compared with it, and the writers of segments are.
 */
import {
  type BackupSource,
  readBase,
  readIncrement,
  readSegment,
} from '../../src/backups/format/backup-reader.ts'
import {
  type HistoryAddress,
  joinIncrements,
  type SelectedBackup,
  selectBackup,
} from '../../src/backups/format/chain.ts'
import type { BackupRecord, RecordOf, Sidecar } from '../../src/wire/files/backups.ts'

export interface RebuiltState {
  readonly sequence: number
  readonly documents: ReadonlyMap<string, RecordOf<'document'>>
  readonly operations: ReadonlyMap<string, RecordOf<'operation'>>
  /** Rows as JSON, by table and primary key. */
  readonly control: RowsByTable
  readonly identity: RowsByTable
  readonly shapes: ReadonlyMap<string, string>
  readonly indexes: ReadonlySet<string>
  /** Names of blobs by the SHA-256 of their bytes. */
  readonly blobs: ReadonlyMap<string, RecordOf<'blob' | 'artifact'>>
}

export type RowsByTable = Map<string, Map<string, string>>
/** The columns of the primary key of a table. */
export type KeysOf = (table: string) => readonly string[]

export interface Keys {
  readonly control: KeysOf
  readonly identity: KeysOf
}

/** Throws if the backup cannot be restored to this sequence. */
export async function rebuildState(
  source: BackupSource,
  address: HistoryAddress,
  keys: Keys,
  sequence = Number.POSITIVE_INFINITY,
): Promise<RebuiltState> {
  const backup = await selectBackup(
    source.target,
    address,
    ({ toSequence }) => toSequence <= sequence,
  )
  const state = new State(keys)
  const begins = { control: 0, identity: 0 }
  for (const sidecar of backup.segments) {
    if (sidecar.backupId !== backup.backupId) continue
    for await (const { record } of readSegment(source, sidecar)) {
      if (record.t === 'environment') begins.control = sidecar.number
      if (record.t === 'identity') begins.identity ||= sidecar.number
      state.apply(record)
    }
  }
  for await (const _ of readBase(source, backup));
  state.sequence = backup.base.toSequence
  await applyIncrements(source, backup, { state, begins, sequence })
  await findBlobs(source, backup, state)
  return state
}

interface Target {
  readonly state: State
  readonly begins: { readonly control: number; readonly identity: number }
  readonly sequence: number
}

async function applyIncrements(
  source: BackupSource,
  backup: SelectedBackup,
  { state, begins, sequence }: Target,
): Promise<void> {
  for (const sidecar of joinIncrements(backup).increments) {
    const isBehind = sidecar.fromSequence >= sequence && sidecar.toSequence > sequence
    if (isBehind) return
    if (sidecar.kind === 'catchup' && sidecar.toSequence > sequence) {
      throw new Error('a restore cannot end inside a catch-up')
    }
    const reached = state.sequence
    let commit = 0
    for await (const { record } of readIncrement(source, sidecar)) {
      if (record.t === 'commit') commit = record.sequence
      const isRow = /^(?:control|identity)/.test(record.t)
      const begin = record.t.startsWith('control') ? begins.control : begins.identity
      if (isRow && sidecar.number < begin) continue
      const isOutside = commit > sequence || (commit > 0 && commit <= reached)
      if (isOutside && ['commit', 'document', 'operation'].includes(record.t)) continue
      if (record.t === 'commit') state.sequence = record.sequence
      // The document of a catch-up may have been read with the base.
      if (record.t === 'document' && record.sequence <= backup.base.toSequence) continue
      state.apply(record)
    }
  }
}

/** Finds the names of blobs up to the segment that has all of them. */
async function findBlobs(source: BackupSource, backup: SelectedBackup, state: State) {
  for (const sidecar of backup.segments) {
    if (sidecar.number <= backup.base.number && sidecar.backupId === backup.backupId) continue
    for await (const { record } of readSegment(source, sidecar as Sidecar)) {
      if (record.t === 'blob' || record.t === 'artifact') state.apply(record)
    }
    if (sidecar.number > backup.base.number && sidecar.runFiles >= state.sequence) return
  }
}

class State implements RebuiltState {
  sequence = 0
  readonly documents = new Map<string, RecordOf<'document'>>()
  readonly operations = new Map<string, RecordOf<'operation'>>()
  readonly control: RowsByTable = new Map()
  readonly identity: RowsByTable = new Map()
  readonly shapes = new Map<string, string>()
  readonly indexes = new Set<string>()
  readonly blobs = new Map<string, RecordOf<'blob' | 'artifact'>>()
  readonly #keys: Keys

  constructor(keys: Keys) {
    this.#keys = keys
  }

  apply(record: BackupRecord): void {
    switch (record.t) {
      case 'document':
        if (record.text === null) this.documents.delete(record.id)
        else this.documents.set(record.id, record)
        return
      case 'operation':
        this.operations.set(record.id, record)
        return
      case 'control':
      case 'identity': {
        const key = rowKey(this.#keys[record.t](record.table), record.row)
        rowsOf(this[record.t], record.table).set(key, JSON.stringify(record.row))
        return
      }
      case 'controlTable':
        this.control.delete(record.table)
        return
      case 'identityTable':
        this.identity.delete(record.table)
        return
      case 'controlDelete': {
        const key = rowKey(this.#keys.control(record.table), record.row)
        rowsOf(this.control, record.table).delete(key)
        return
      }
      case 'shape':
        this.shapes.set(record.table, record.shape)
        return
      case 'index':
        this.indexes.add(JSON.stringify([record.table, record.fields, record.defaults]))
        return
      case 'blob':
      case 'artifact':
        this.blobs.set(record.sha256, record)
        return
      default:
    }
  }
}

export function rowKey(
  key: readonly string[],
  row: Readonly<Record<string, string | null>>,
): string {
  return JSON.stringify(key.map((column) => row[column]))
}

export function rowsOf(tables: RowsByTable, table: string): Map<string, string> {
  const rows = tables.get(table) ?? new Map()
  tables.set(table, rows)
  return rows
}
