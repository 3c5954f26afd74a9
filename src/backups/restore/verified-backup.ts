/**
 * Reads and checks everything that a restore will write, and keeps what it needs to know before it
 * writes documents: the rows of all other databases, and which bytes the target must have.
 */
import { IDENTITY_KEYS } from '../../database/identity/restored-rows.ts'
import { compactId } from '../../documents/compact-ids.ts'
import type { IndexDefinition } from '../../documents/store.ts'
import {
  BackupContents,
  type RestoredTable,
  type TextColumns,
} from '../../storage/restores/backup-contents.ts'
import {
  CONTROL_MIGRATIONS,
  type ControlSchema,
  controlSchema,
} from '../../storage/restores/control-rows.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { type BackupRecord, parseShape, type RecordOf } from '../../wire/files/backups.ts'
import { bytesOfDocument, canNameBytes } from '../base/base-records.ts'
import { type BackupSource, readBase, readBlob, readSegment } from '../format/backup-reader.ts'
import { documentLeaf } from '../format/backup-writer.ts'
import { leafDigest } from '../format/merkle-tree.ts'
import { corrupt } from '../format/segments.ts'
import type { SelectedRestore } from './goals.ts'
import { type Changes, readChanges } from './increments.ts'

/** Blobs that are read at the same time: a remote target answers each after some milliseconds. */
const BLOBS_AT_ONCE = 8

export interface VerifiedBackup {
  /** The state after the last change. */
  readonly sequence: number
  readonly atMicros: bigint
  /** Texts of `service.json` and `keyring.json`. */
  readonly environment: RecordOf<'environment'>
  readonly shapes: ReadonlyMap<string, FieldShape>
  readonly indexes: readonly IndexDefinition[]
  readonly contents: BackupContents
  /**
   * Files, and parts of files, whose bytes the backup does not have: they were damaged, or stored
   * too late for it.
   */
  readonly missingFiles: number
  /** Segments that were read. */
  readonly segments: number
  readonly blobs: number
  /** Plain bytes of files and artifacts. */
  readonly blobBytes: number
}

export type Progress = (step: string, done: number) => void

/** The caller closes the contents. Raises BACKUP_CORRUPT, BACKUP_VERSION_UNKNOWN, UNAVAILABLE. */
export async function verifyRestore(
  source: BackupSource,
  selected: SelectedRestore,
  onProgress: Progress = () => undefined,
): Promise<VerifiedBackup> {
  const segments = await verifySegments(source, selected, onProgress)
  try {
    return { ...segments, ...(await verifyBlobs(source, selected, segments.contents, onProgress)) }
  } catch (error) {
    segments.contents.close()
    throw error
  }
}

/** The content of a backup before the bytes of its files and artifacts are read. */
export type VerifiedSegments = Omit<VerifiedBackup, 'blobs' | 'blobBytes'>

/** The caller closes the contents. Raises the faults of `verifyRestore`. */
export async function verifySegments(
  source: BackupSource,
  selected: SelectedRestore,
  onProgress: Progress = () => undefined,
): Promise<VerifiedSegments> {
  const contents = new BackupContents()
  try {
    const reading = new Reading(contents)
    const { backup, increments, goal } = selected
    const segments = new Set<string>()
    const note = (segment: string) => {
      if (segments.has(segment)) return
      segments.add(segment)
      onProgress('segments', segments.size)
    }
    for await (const { record, segment } of readBase(source, backup)) {
      note(segment)
      reading.addBase(record, segment)
    }
    let sequence = backup.base.toSequence
    let atMicros = BigInt(backup.base.atMicros)
    for (const sidecar of increments) {
      const changes = await readChanges(source, { sidecar, after: sequence, goal })
      note(changes.segment)
      reading.addChanges(changes)
      const last = changes.commits.at(-1)
      sequence = last?.sequence ?? sequence
      atMicros = last?.atMicros ?? atMicros
    }
    for (const sidecar of selected.naming) {
      for await (const { record, segment } of readSegment(source, sidecar)) {
        note(segment)
        reading.addNames(record)
      }
    }
    const read = reading.finish()
    const missingFiles = contents.countMissingFiles()
    return { sequence, atMicros, ...read, contents, missingFiles, segments: segments.size }
  } catch (error) {
    contents.close()
    throw error
  }
}

async function verifyBlobs(
  source: BackupSource,
  { backup }: SelectedRestore,
  contents: BackupContents,
  onProgress: Progress,
): Promise<{ blobs: number; blobBytes: number }> {
  let blobs = 0
  let blobBytes = 0
  await eachOf(contents.namedBytes(), BLOBS_AT_ONCE, async ({ kind, ...named }) => {
    for await (const chunk of readBlob(source, backup, { t: kind, ...named })) {
      blobBytes += chunk.length
    }
    blobs += 1
    onProgress('files', blobs)
  })
  return { blobs, blobBytes }
}

/** Calls `use` for each item, for up to `limit` of them at the same time. */
export async function eachOf<T>(
  items: Iterable<T>,
  limit: number,
  use: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]()
  let hasFailed = false
  const worker = async () => {
    for (;;) {
      const { done, value } = hasFailed ? { done: true, value: null } : iterator.next()
      if (done === true) return
      try {
        await use(value as T)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  const workers = Array.from({ length: limit }, worker)
  // What the others still write would appear after the caller has removed everything.
  await Promise.allSettled(workers)
  await Promise.all(workers)
}

/** Collects the content of the records, which come in the order of the segments. */
class Reading {
  readonly #contents: BackupContents
  readonly #shapes = new Map<string, FieldShape>()
  readonly #indexes = new Map<string, IndexDefinition>()
  #environment: RecordOf<'environment'> | null = null
  #schema: ControlSchema | null = null
  /** The segments in which the base has these rows: they have changes of earlier segments. */
  #begins: Record<RestoredTable['source'], string> = { control: '', identity: '' }
  #last = ''

  constructor(contents: BackupContents) {
    this.#contents = contents
  }

  addBase(record: BackupRecord, segment: string): void {
    this.#last = segment
    if (record.t === 'document') this.#noteFile(record, segment)
    if (record.t === 'document' || record.t === 'operation') return
    if (record.t === 'environment') this.#begins.control = segment
    if (record.t === 'identity') this.#begins.identity ||= segment
    this.#add(record, segment)
  }

  addChanges({ commits, others, segment }: Changes): void {
    this.#last = segment
    for (const { documents } of commits) {
      for (const document of documents) {
        const id = compactId(document.id)
        if (id === null) throw corrupt(segment, 'an ID is not canonical')
        const digest = document.text === null ? null : leafDigest(documentLeaf(document))
        this.#contents.setLeaf({ id, digest })
        this.#noteFile(document, segment)
      }
    }
    for (const record of others) {
      const source = sourceOf(record)
      if (source === null || segment > this.#begins[source]) this.#add(record, segment)
    }
  }

  /** Adds the bytes that the record names, and nothing else of it. */
  addNames(record: BackupRecord): void {
    if (record.t !== 'blob' && record.t !== 'artifact') return
    const { t: kind, sha256, bytes, name } = record
    this.#contents.addBytes({ kind, sha256, bytes, name })
  }

  finish() {
    if (this.#environment === null) throw corrupt(this.#last, 'it has no record of the Environment')
    return {
      environment: this.#environment,
      shapes: this.#shapes,
      indexes: [...this.#indexes.values()],
    }
  }

  #noteFile({ id, text }: RecordOf<'document'>, segment: string): void {
    if (!canNameBytes(id)) return
    try {
      this.#contents.setFileDocument(id, bytesOfDocument(id, text)?.sha256 ?? null)
    } catch (error) {
      throw corrupt(segment, 'the document of a file', error)
    }
  }

  #add(record: BackupRecord, segment: string): void {
    const contents = this.#contents
    switch (record.t) {
      case 'environment':
        this.#environment = record
        break
      case 'shape':
        this.#shapes.set(record.table, shapeOf(record, segment))
        break
      case 'index':
        this.#indexes.set(JSON.stringify(record), {
          table: record.table,
          fields: record.fields,
          defaults: record.defaults ?? undefined,
        })
        break
      case 'blob':
      case 'artifact':
        this.addNames(record)
        break
      case 'control':
      case 'identity': {
        const { t: source, table, row } = record
        const key = this.#keyOf({ source, table }, row, segment)
        contents.putRow({ source, table, key, columns: row })
        break
      }
      case 'controlTable':
        contents.clearTable({ source: 'control', table: record.table })
        break
      case 'identityTable':
        contents.clearTable({ source: 'identity', table: record.table })
        break
      case 'controlDelete': {
        const which = { source: 'control', table: record.table } as const
        contents.deleteRow({ ...which, key: this.#keyOf(which, record.row, segment) })
        break
      }
      default:
        throw corrupt(segment, `a record of ${record.t} has no place there`)
    }
  }

  #keyOf(which: RestoredTable, row: TextColumns, segment: string): string {
    const columns =
      which.source === 'control' ? this.#controlKeys(which.table) : identityKeys(which.table)
    if (columns === undefined) throw corrupt(segment, 'a table is unknown')
    const key = columns.map((column) => row[column])
    if (key.includes(undefined)) throw corrupt(segment, `a row of ${which.table} has no key`)
    return JSON.stringify(key)
  }

  /** The rows of migrations are before all others, which the schema that they name has. */
  #controlKeys(table: string): readonly string[] | undefined {
    if (table === CONTROL_MIGRATIONS) return ['version']
    this.#schema ??= controlSchema([...this.#contents.rows('control', CONTROL_MIGRATIONS)])
    return this.#schema.keys.get(table)
  }
}

function identityKeys(table: string): readonly string[] | undefined {
  return Object.hasOwn(IDENTITY_KEYS, table)
    ? IDENTITY_KEYS[table as keyof typeof IDENTITY_KEYS]
    : undefined
}

/** Returns the database that the record is about; null for none. */
function sourceOf({ t }: BackupRecord): RestoredTable['source'] | null {
  if (t === 'identity' || t === 'identityTable') return 'identity'
  return t === 'environment' || t.startsWith('control') ? 'control' : null
}

function shapeOf({ shape }: RecordOf<'shape'>, segment: string): FieldShape {
  try {
    return parseShape(shape)
  } catch (error) {
    if (!(error instanceof ValidationError) && !(error instanceof SyntaxError)) throw error
    throw corrupt(segment, 'the shape of a table', error)
  }
}
