/**
 * Writes the documents of a backup that a Workspace can use into an empty document file, with the
 * redacted fields replaced. What is written is redacted before it reaches the file, so that no
 * page, index or log of the file ever has an original.
 */
import { type BackupSource, readBase } from '../../backups/format/backup-reader.ts'
import { corrupt } from '../../backups/format/segments.ts'
import type { SelectedRestore } from '../../backups/restore/goals.ts'
import { readChanges } from '../../backups/restore/increments.ts'
import { compactId, tableOf } from '../../documents/compact-ids.ts'
import { openSqliteLoader } from '../../documents/sqlite/loader.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import type {
  DocumentStore,
  DocumentWrite,
  StoredDocument,
  TransactionWrite,
} from '../../documents/store.ts'
import { CopyDecisions } from '../../storage/restores/copy-decisions.ts'
import { FILE_DOCUMENTS } from '../../value/files/files.ts'
import { RESERVED_TABLES } from '../../value/manifest.ts'
import { MIGRATION_DOCUMENTS } from '../../value/migrations/migrations.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { ValueObject } from '../../value/values.ts'
import type { RecordOf } from '../../wire/files/backups.ts'
import { type BackupSurvey, completeMigration } from './backup-survey.ts'
import { redactionFault } from './redaction-file.ts'
import type { Redactor } from './redactor.ts'
import type { WorkspaceTables } from './workspace-tables.ts'

export interface DocumentsCopy {
  readonly source: BackupSource
  readonly selected: SelectedRestore
  readonly survey: BackupSurvey
  /** The document file, which must not exist. */
  readonly path: string
  /** A file for the time of the copy, which must not exist. The caller removes it. */
  readonly decisionsPath: string
  readonly tables: WorkspaceTables
  readonly redactor: Redactor
  readonly hasFiles: boolean
  readonly onProgress: (documents: number) => void
  /** Stops the copy, which rejects with the reason. */
  readonly signal: AbortSignal
}

/** The documents of one table: how many were copied and left out. */
export interface CopiedTable {
  readonly table: string
  readonly documents: number
  /** Documents that do not fit the schema, and all of a table that the schema lacks. */
  readonly leftOut: number
  /** The rule that the first of them breaks; null for a table that the schema lacks. */
  readonly rule: string | null
  /** Paths of fields that the schema lacks, which were left out of documents; 20 at most. */
  readonly fieldsLeftOut: readonly string[]
}

export interface CopiedDocuments {
  /** The newest sequence of the documents that were written. */
  readonly sequence: number
  /** The tables of the Workspace and of the backup, by their names. */
  readonly tables: readonly CopiedTable[]
  /** Stored files, whose bytes are read on demand. */
  readonly files: number
}

/** Paths of fields that a report names for one table. */
const FIELDS_MAX = 20
const BATCH_ROWS = 2_000
const BATCH_TEXT_UNITS = 2 * 1024 * 1024

/** Raises BACKUP_CORRUPT, UNAVAILABLE, and REDACTION_INVALID for what cannot be redacted. */
export async function copyDocuments(copy: DocumentsCopy): Promise<CopiedDocuments> {
  const decisions = CopyDecisions.create(copy.decisionsPath)
  try {
    const selection = new Selection(copy, decisions)
    await loadBase(copy, selection)
    const store = await openSqliteDocuments(copy.path, { mayBeNew: false })
    try {
      await applyIncrements(copy, selection, store)
      return { ...selection.result(), sequence: store.latestSequence }
    } finally {
      await store.close()
    }
  } finally {
    decisions.close()
  }
}

async function loadBase(copy: DocumentsCopy, selection: Selection): Promise<void> {
  const { source, selected, survey, path, onProgress } = copy
  const { base } = selected.backup
  const loader = await openSqliteLoader(path, {
    sequence: base.toSequence,
    atMicros: BigInt(base.atMicros),
    shapes: new Map([...survey.shapes].filter(([table]) => isCopied(copy, table))),
  })
  let batch: StoredDocument[] = []
  let units = 0
  let copied = 0
  const flush = async () => {
    await loader.add(batch)
    copied += batch.length
    onProgress(copied)
    batch = []
    units = 0
  }
  try {
    for await (const { record, segment } of readBase(source, selected.backup)) {
      copy.signal.throwIfAborted()
      if (record.t !== 'document') continue
      if (record.text === null) throw corrupt(segment, 'a base has a deleted document')
      const text = selection.take(record, segment)
      if (text === null) continue
      const { id, sequence } = record
      batch.push({ id, sequence, createdAtMicros: BigInt(record.createdAtMicros), text })
      units += text.length
      if (batch.length >= BATCH_ROWS || units >= BATCH_TEXT_UNITS) await flush()
    }
    await flush()
    await loader.finish()
  } finally {
    await loader.close()
  }
}

function isCopied({ tables }: DocumentsCopy, table: string): boolean {
  return tables.has(table) || table === FILE_DOCUMENTS || table === MIGRATION_DOCUMENTS
}

async function applyIncrements(
  { source, selected, signal }: DocumentsCopy,
  selection: Selection,
  store: DocumentStore,
): Promise<void> {
  const snapshot = store.latestSequence
  let after = snapshot
  let batch: TransactionWrite[] = []
  let rows = 0
  let units = 0
  const flush = async () => {
    if (batch.length > 0) await store.commit({ transactions: batch })
    batch = []
    rows = 0
    units = 0
  }
  for (const sidecar of selected.increments) {
    signal.throwIfAborted()
    const { commits, segment } = await readChanges(source, { sidecar, after, goal: selected.goal })
    for (const { sequence, atMicros, documents } of commits) {
      after = sequence
      const writes: DocumentWrite[] = []
      for (const record of documents) {
        const { id } = record
        const existed = selection.changed(id) ?? (await store.read(id, snapshot)) !== null
        const text = selection.change(record, { existed, segment })
        const createdAtMicros = BigInt(record.createdAtMicros)
        if (text !== null || existed) writes.push({ id, createdAtMicros, text, entries: [] })
      }
      if (writes.length > 0) batch.push({ sequence, atMicros, writes })
      rows += writes.length
      units += writes.reduce((sum, { text }) => sum + (text?.length ?? 0), 0)
      if (rows >= BATCH_ROWS || units >= BATCH_TEXT_UNITS) await flush()
    }
  }
  await flush()
}

/** The version of a document before, and the segment that has this one. */
interface Version {
  readonly existed: boolean
  readonly segment: string
}

interface Counts {
  documents: number
  readonly fieldsLeftOut: Set<string>
  rule: string | null
}

/** Decides about each version of a document, in the order of the backup. */
class Selection {
  readonly #copy: DocumentsCopy
  readonly #decisions: CopyDecisions
  readonly #tables = new Map<string, Counts>()
  #files = 0

  constructor(copy: DocumentsCopy, decisions: CopyDecisions) {
    this.#copy = copy
    this.#decisions = decisions
    for (const { name } of copy.tables.manifests) this.#countsOf(name)
  }

  /** Returns the text of a document of the base to store; null for none. */
  take(record: RecordOf<'document'>, segment: string): string | null {
    return this.#decide(record, { existed: false, segment })
  }

  /** Returns whether the last version of a changed document was copied; undefined for others. */
  changed(id: string): boolean | undefined {
    return this.#decisions.changed(id)
  }

  /** Returns the text of a later version to store; null for none. */
  change(record: RecordOf<'document'>, version: Version): string | null {
    this.#decisions.readmit(record.id)
    const text = this.#decide(record, version)
    this.#decisions.noteChanged(record.id, text !== null)
    return text
  }

  result(): Omit<CopiedDocuments, 'sequence'> {
    const counts = this.#decisions.countLeftOut()
    const tables = [...this.#tables]
      .map(([table, { documents, rule, fieldsLeftOut }]) => {
        const fields = [...fieldsLeftOut].sort()
        const leftOut = counts.get(table) ?? 0
        return { table, documents, leftOut, rule, fieldsLeftOut: fields }
      })
      .sort((a, b) => (a.table < b.table ? -1 : 1))
    return { tables, files: this.#files }
  }

  #textOf({ id, text }: Pick<RecordOf<'document'>, 'id' | 'text'>, segment: string): string | null {
    const { tables, redactor, hasFiles } = this.#copy
    const table = tableOf(id)
    if (text === null) return null
    if (table === FILE_DOCUMENTS) return hasFiles ? text : null
    // The migrations of the documents: they must not run again.
    if (table === MIGRATION_DOCUMENTS) return completeMigration({ text }) === null ? null : text
    if (!tables.has(table)) {
      // The others are scheduled work, grants and what else a server has of its own.
      if (!RESERVED_TABLES.includes(table)) this.#leaveOut(table, id)
      return null
    }
    const known = this.#countsOf(table)
    const stored = fieldsOf(text, segment)
    const fields = tables.declared(table, stored, (path) => {
      if (known.fieldsLeftOut.size < FIELDS_MAX) known.fieldsLeftOut.add(path)
    })
    const rule = tables.misfit(table, fields)
    if (rule !== null) {
      this.#leaveOut(table, id)
      known.rule ??= rule
      return null
    }
    const redacted = redactor.redact(table, fields)
    if (redacted === stored) return text
    const broken = tables.misfit(table, redacted)
    if (broken !== null) {
      throw redactionFault(`a redacted document does not fit the schema: ${broken}`)
    }
    return encodeStored(redacted)
  }

  #decide({ id, text }: RecordOf<'document'>, { existed, segment }: Version): string | null {
    if (compactId(id) === null) throw corrupt(segment, 'an ID is not canonical')
    const copied = this.#textOf({ id, text }, segment)
    const change = Number(copied !== null) - Number(existed)
    const table = tableOf(id)
    if (table === FILE_DOCUMENTS) this.#files += change
    const counts = this.#tables.get(table)
    if (counts !== undefined) counts.documents += change
    return copied
  }

  #leaveOut(table: string, id: string): void {
    this.#countsOf(table)
    this.#decisions.leaveOut(table, id)
  }

  #countsOf(table: string): Counts {
    let counts = this.#tables.get(table)
    if (counts === undefined) {
      counts = { documents: 0, fieldsLeftOut: new Set(), rule: null }
      this.#tables.set(table, counts)
    }
    return counts
  }
}

function fieldsOf(text: string, segment: string): ValueObject {
  try {
    const fields = decodeStored(text)
    if (fields instanceof Map) return fields as ValueObject
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
  throw corrupt(segment, 'a document is not stored JSON')
}
