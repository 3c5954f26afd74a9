/** Reads a backup once for what a copy has to know before it writes documents. */
import { type BackupSource, readBase, readSegment } from '../../backups/format/backup-reader.ts'
import { corrupt } from '../../backups/format/segments.ts'
import type { SelectedRestore } from '../../backups/restore/goals.ts'
import { readChanges } from '../../backups/restore/increments.ts'
import { tableOf } from '../../documents/compact-ids.ts'
import type { CopiedFiles } from '../../storage/restores/copied-files.ts'
import { MIGRATION_DOCUMENTS } from '../../value/migrations/migrations.ts'
import { type FieldShape, mergeShapes } from '../../value/schema/field-shapes.ts'
import { decodeStored } from '../../value/stored.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { type BackupRecord, parseShape, type RecordOf } from '../../wire/files/backups.ts'
import type { CompleteMigration } from './workspace-tables.ts'

export interface BackupSurvey {
  /** The newest state of the backup. */
  readonly sequence: number
  readonly atMicros: bigint
  /** All fields that documents of the tables may have. */
  readonly shapes: ReadonlyMap<string, FieldShape>
  readonly migrations: readonly CompleteMigration[]
}

export interface SurveyOptions {
  readonly source: BackupSource
  readonly selected: SelectedRestore
  /** Receives where the bytes of files are. */
  readonly files: CopiedFiles
  /** Stops the survey, which rejects with the reason. */
  readonly signal: AbortSignal
}

/** Raises BACKUP_CORRUPT and UNAVAILABLE. */
export async function surveyBackup(options: SurveyOptions): Promise<BackupSurvey> {
  const { source, selected, files, signal } = options
  const { backup, increments, goal, naming } = selected
  const survey = new Survey(files)
  for await (const { record, segment } of readBase(source, backup)) {
    signal.throwIfAborted()
    survey.add(record, segment)
  }
  let sequence = backup.base.toSequence
  let atMicros = BigInt(backup.base.atMicros)
  for (const sidecar of increments) {
    signal.throwIfAborted()
    const changes = await readChanges(source, { sidecar, after: sequence, goal })
    for (const { documents } of changes.commits) {
      for (const document of documents) survey.add(document, changes.segment)
    }
    for (const record of changes.others) survey.add(record, changes.segment)
    const last = changes.commits.at(-1)
    sequence = last?.sequence ?? sequence
    atMicros = last?.atMicros ?? atMicros
  }
  for (const sidecar of naming) {
    signal.throwIfAborted()
    for await (const { record } of readSegment(source, sidecar)) survey.addBlob(record)
  }
  return { sequence, atMicros, shapes: survey.shapes, migrations: survey.complete() }
}

class Survey {
  readonly shapes = new Map<string, FieldShape>()
  readonly #files: CopiedFiles
  /** Migrations by the IDs of their records; null for one that is not complete. */
  readonly #migrations = new Map<string, CompleteMigration | null>()

  constructor(files: CopiedFiles) {
    this.#files = files
  }

  add(record: BackupRecord, segment: string): void {
    if (record.t === 'shape') {
      const shape = shapeOf(record, segment)
      const known = this.shapes.get(record.table)
      // Documents of the base have fields that a later shape may lack.
      this.shapes.set(record.table, known === undefined ? shape : mergeShapes(known, shape))
    } else if (record.t === 'document') {
      if (tableOf(record.id) === MIGRATION_DOCUMENTS) {
        this.#migrations.set(record.id, migrationOf(record, segment))
      }
    } else this.addBlob(record)
  }

  addBlob(record: BackupRecord): void {
    if (record.t !== 'blob') return
    const { sha256, bytes, name } = record
    this.#files.add({ sha256, bytes, name })
  }

  complete(): CompleteMigration[] {
    return [...this.#migrations.values()].filter((migration) => migration !== null)
  }
}

/** Returns null for a migration that is not complete: a copy runs it from its begin. */
export function completeMigration({
  text,
}: Pick<RecordOf<'document'>, 'text'>): CompleteMigration | null {
  if (text === null) return null
  const fields = decodeStored(text)
  if (!(fields instanceof Map) || fields.get('state') !== 'complete') return null
  const [name, digest] = [fields.get('name'), fields.get('digest')]
  return typeof name === 'string' && typeof digest === 'string' ? { name, digest } : null
}

function migrationOf(record: RecordOf<'document'>, segment: string): CompleteMigration | null {
  try {
    return completeMigration(record)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw corrupt(segment, 'the record of a migration', error)
  }
}

function shapeOf({ shape }: RecordOf<'shape'>, segment: string): FieldShape {
  try {
    return parseShape(shape)
  } catch (error) {
    if (!(error instanceof ValidationError) && !(error instanceof SyntaxError)) throw error
    throw corrupt(segment, 'the shape of a table', error)
  }
}
