/** Converts the parts of a server to records of a backup. */
import type { DocumentVersion, IndexRow, OperationRecord } from '../../documents/store.ts'
import type { ControlRow, ControlValue } from '../../storage/control/copies.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import type { RecordOf } from '../../wire/files/backups.ts'

export function documentRecord(version: DocumentVersion): RecordOf<'document'> {
  const { id, createdAtMicros, sequence, text } = version
  return { t: 'document', id, createdAtMicros: String(createdAtMicros), sequence, text }
}

export function operationRecord(record: OperationRecord): RecordOf<'operation'> {
  const { operationId, fingerprint, createdAtMicros, ...rest } = record
  return {
    t: 'operation',
    id: operationId as RecordOf<'operation'>['id'],
    fingerprint: Buffer.from(fingerprint).toString('base64'),
    ...rest,
    createdAtMicros: String(createdAtMicros),
  }
}

export function shapeRecord(table: string, shape: FieldShape): RecordOf<'shape'> {
  return { t: 'shape', table, shape: JSON.stringify(shape) }
}

export function indexRecord({ table, fields, defaults }: IndexRow): RecordOf<'index'> {
  return {
    t: 'index',
    table,
    fields: [...fields],
    defaults: defaults === undefined ? null : [...defaults],
  }
}

export function controlRecord({ table, row }: ControlRow): RecordOf<'control'> {
  const columns = Object.entries(row).map(([column, value]) => [column, columnText(value)])
  return { t: 'control', table, row: Object.fromEntries(columns) }
}

function columnText(value: ControlValue): string | null {
  if (value === null) return null
  if (typeof value === 'string') return `t:${value}`
  if (typeof value === 'bigint') return `i:${value}`
  return `b:${Buffer.from(value).toString('base64')}`
}
