/** Converts the parts of a server to records of a backup. */
import type { DocumentVersion, OperationRecord, StoreSchema } from '../../documents/store.ts'
import { assert } from '../../errors/assert.ts'
import type { ControlRow, ControlValue } from '../../storage/control/copies.ts'
import { FILE_DOCUMENTS, PART_DOCUMENTS } from '../../value/files/files.ts'
import type { Secret } from '../../value/secret.ts'
import { decodeStored } from '../../value/stored.ts'
import type { RecordOf } from '../../wire/files/backups.ts'

export function documentRecord(version: DocumentVersion): RecordOf<'document'> {
  const { id, createdAtMicros, sequence, text } = version
  return { t: 'document', id, createdAtMicros: String(createdAtMicros), sequence, text }
}

export function operationRecord(record: OperationRecord): RecordOf<'operation'> {
  // Every Mutation has one: the rest of the fields with `...` takes four times as long.
  const { operationId, fingerprint, commitSequence, releaseId, result, attempts } = record
  return {
    t: 'operation',
    id: operationId as RecordOf<'operation'>['id'],
    fingerprint: fingerprint.toBase64(),
    commitSequence,
    releaseId,
    function: record.function,
    result,
    attempts,
    createdAtMicros: String(record.createdAtMicros),
  }
}

/** Secrets that key the digests in the identity database. */
export interface BackedUpPeppers {
  readonly identity: Secret
  /** `subjectPepper` of each identity provider. */
  readonly subjects: readonly { readonly providerId: string; readonly subjectPepper: Secret }[]
}

/** Returns the fields of the record `environment` that the settings ask for. */
export function pepperFields({
  identity,
  subjects,
}: BackedUpPeppers): Pick<RecordOf<'environment'>, 'pepper' | 'subjectPeppers'> {
  const subjectPeppers = subjects.map(({ providerId, subjectPepper }) => [
    providerId,
    subjectPepper.reveal(),
  ])
  return { pepper: identity.reveal(), subjectPeppers: Object.fromEntries(subjectPeppers) }
}

/** Yields the fields of all tables, and the indexes that are not being removed. */
export function* schemaRecords({
  shapes,
  indexes,
}: StoreSchema): Generator<RecordOf<'shape' | 'index'>> {
  for (const [table, shape] of [...shapes].sort(([a], [b]) => (a < b ? -1 : 1))) {
    yield { t: 'shape', table, shape: JSON.stringify(shape) }
  }
  for (const { table, fields, defaults = null, state } of indexes) {
    if (state === 'dropped') continue
    yield {
      t: 'index',
      table,
      fields: [...fields],
      defaults: defaults === null ? null : [...defaults],
    }
  }
}

export function controlRecord({ table, row }: ControlRow): RecordOf<'control'> {
  const columns = Object.entries(row).map(([column, value]) => [column, columnText(value)])
  return { t: 'control', table, row: Object.fromEntries(columns) }
}

/** Digest and length of bytes that a record refers to. */
export interface NamedBytes {
  /** 64 lowercase hex characters. */
  readonly sha256: string
  readonly size: number
}

/** System tables whose documents name stored bytes. */
const TABLES_WITH_BYTES: readonly string[] = [FILE_DOCUMENTS, PART_DOCUMENTS]

/** Returns whether documents of this table name stored bytes. */
export function canNameBytes(id: string): boolean {
  return TABLES_WITH_BYTES.includes(id.slice(0, id.lastIndexOf('_')))
}

/** Returns the stored bytes that a document names; null if it names none. */
export function bytesOfDocument(id: string, text: string | null): NamedBytes | null {
  if (text === null || !canNameBytes(id)) return null
  const fields = decodeStored(text)
  assert(fields instanceof Map, 'a document has fields')
  const [sha256, size] = [fields.get('sha256'), fields.get('size')]
  assert(typeof sha256 === 'string' && typeof size === 'bigint', 'a file has a digest and a size')
  return { sha256, size: Number(size) }
}

/** Returns the artifacts that the row of a Release refers to. */
export function artifactsOfRow(table: string, row: RecordOf<'control'>['row']): NamedBytes[] {
  if (table !== 'releases' || row.state === 't:retired') return []
  return ['manifest', 'artifact'].map((kind) => {
    const [digest, size] = [row[`${kind}_digest`], row[`${kind}_bytes`]]
    assert(typeof digest === 'string' && typeof size === 'string', 'a Release has its artifacts')
    return { sha256: digest.slice('t:sha256:'.length), size: Number(size.slice('i:'.length)) }
  })
}

function columnText(value: ControlValue): string | null {
  if (value === null) return null
  if (typeof value === 'string') return `t:${value}`
  if (typeof value === 'bigint') return `i:${value}`
  return `b:${Buffer.from(value).toString('base64')}`
}
