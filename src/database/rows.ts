/** Reads columns with their exact types. A row that does not match is corrupt data. */
import { Fault } from '../errors/fault.ts'
import { type Capability, isCapability } from '../value/capabilities.ts'
import { type Id, type IdPrefix, isId } from '../value/ids.ts'
import type { Scope } from '../value/scope.ts'
import type { RawRow } from './connection.ts'

const DECIMAL = /^(?:0|[1-9][0-9]*)$/

/** The fault of a column that is corrupt. It never has the value. */
export function corrupt(what: string): Fault {
  return new Fault('PLATFORM_IDENTITY_STORAGE_CORRUPT', { detail: `stored ${what}` })
}

export function readText(row: RawRow, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw corrupt(column)
  return value
}

export function readBoolean(row: RawRow, column: string): boolean {
  const value = row[column]
  if (typeof value !== 'boolean') throw corrupt(column)
  return value
}

export function readInteger(row: RawRow, column: string): number {
  const value = row[column]
  if (typeof value !== 'number' || !Number.isInteger(value)) throw corrupt(column)
  return value
}

export function readBytes(row: RawRow, column: string): Buffer {
  const value = row[column]
  if (!Buffer.isBuffer(value)) throw corrupt(column)
  return value
}

/** Reads a bigint or numeric column without negative numbers. */
export function readCount(row: RawRow, column: string): bigint {
  const value = row[column]
  if (typeof value !== 'string' || !DECIMAL.test(value)) throw corrupt(column)
  return BigInt(value)
}

export function readId<P extends IdPrefix>(row: RawRow, column: string, prefix: P): Id<P> {
  const value = row[column]
  if (!isId(prefix, value)) throw corrupt(column)
  return value
}

export function readMember<T extends string>(
  row: RawRow,
  column: string,
  members: readonly T[],
): T {
  const value = row[column]
  const member = members.find((candidate) => candidate === value)
  if (member === undefined) throw corrupt(column)
  return member
}

/** Reads a column that may be null. */
export function readNullable<T>(
  row: RawRow,
  column: string,
  reader: (row: RawRow, column: string) => T,
): T | null {
  return row[column] === null ? null : reader(row, column)
}

/** Reads the columns scope_kind, project_id and environment_id. */
export function readScope(row: RawRow): Scope {
  const { scope_kind: kind, project_id: projectId, environment_id: environmentId } = row
  if (kind === 'installation' && projectId === null && environmentId === null) {
    return { kind, projectId, environmentId }
  }
  if (!isId('prj', projectId)) throw corrupt('scope')
  if (kind === 'project' && environmentId === null) return { kind, projectId, environmentId }
  if (kind !== 'environment' || !isId('env', environmentId)) throw corrupt('scope')
  return { kind, projectId, environmentId }
}

/** Reads known capabilities, strictly ascending. */
export function readCapabilities(row: RawRow, column: string): readonly Capability[] {
  const value = row[column]
  if (!Array.isArray(value)) throw corrupt(column)
  return value.map((item: unknown, i) => {
    const ascending = i === 0 || String(value[i - 1]) < String(item)
    if (typeof item !== 'string' || !isCapability(item) || !ascending) throw corrupt(column)
    return item
  })
}
