/**
 * The effects of each difference between two schemas: on the promotion of the newer Release, on
 * both side by side, and on the rollback. Fields, indexes and tables do not depend on each other,
 * so each is compared by itself.
 */
import type { IndexManifest, TableManifest } from '../../value/manifest.ts'
import type { FieldsJson } from '../../value/validators.ts'
import { TOO_COMPLEX, UNIQUE_UNCHECKED } from './comparison/gaps.ts'
import { type Refusal, refusalText } from './comparison/refusals.ts'
import { SchemaComparison, type Tables } from './comparison/schema-comparison.ts'
import { fieldText } from './comparison/validator-texts.ts'

/** `documents`: allowed if no stored document speaks against it, which a look at them finds out. */
export type Outcome = 'allowed' | 'documents'

export interface SchemaChange {
  readonly table: string
  /** A field or an index; empty for a table. */
  readonly path: string
  readonly change: string
  readonly promote: Outcome
  readonly rollback: Outcome
  /** The reasons why the two Releases cannot serve side by side; empty if they can. */
  readonly refusals: readonly string[]
}

/** Returns the changes from `current` to `next`, in the order of their tables and names. */
export function schemaChanges(
  next: Tables,
  current: Tables,
  comparison = new SchemaComparison(),
): SchemaChange[] {
  const names = [...new Set([...current.keys(), ...next.keys()])].sort()
  const refusals = [
    ...comparison.conflicts({ reader: next, writer: current, newer: 'reader' }),
    ...comparison.conflicts({ reader: current, writer: next, newer: 'writer' }),
  ]
  return names.flatMap((name) => {
    const [before, after] = [current.get(name), next.get(name)]
    const ofTable = refusals.filter(({ table }) => table === name)
    if (before === undefined) return tableChange(name, 'the table is added')
    if (after === undefined) return tableChange(name, 'the table is removed')
    const tables = { before, after, comparison, refusals: ofTable }
    return [...fieldChanges(tables), ...indexChanges(tables)]
  })
}

function tableChange(table: string, change: string): SchemaChange {
  return { table, path: '', change, promote: 'allowed', rollback: 'allowed', refusals: [] }
}

interface TableChange {
  readonly before: TableManifest
  readonly after: TableManifest
  readonly comparison: SchemaComparison
  readonly refusals: readonly Refusal[]
}

function fieldChanges({ before, after, comparison, refusals }: TableChange): SchemaChange[] {
  const { name: table } = before
  const names = [...new Set([...Object.keys(before.fields), ...Object.keys(after.fields)])]
  return names.flatMap((name) => {
    const [was, is] = [fieldIn(before, name), fieldIn(after, name)]
    if (JSON.stringify(was) === JSON.stringify(is)) return []
    const [one, other] = [tableOf(table, { [name]: was }), tableOf(table, { [name]: is })]
    const lookedAt = (reader: Tables, writer: Tables): Outcome =>
      comparison.uncertainTables(reader, writer).length > 0 ? 'documents' : 'allowed'
    const found = refusals.filter(
      ({ path, change }) =>
        change !== UNIQUE_UNCHECKED.text.reader &&
        change !== UNIQUE_UNCHECKED.text.writer &&
        (change === TOO_COMPLEX.text.reader || path.split(/[.[]/)[0] === name),
    )
    return {
      table,
      path: name,
      change: fieldText(was, is),
      promote: lookedAt(other, one),
      rollback: lookedAt(one, other),
      refusals: found.map(refusalText),
    }
  })
}

function fieldIn({ fields }: TableManifest, name: string): FieldsJson[string] | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined
}

function tableOf(
  name: string,
  fields: Readonly<Record<string, FieldsJson[string] | undefined>>,
): Tables {
  const declared = Object.entries(fields).filter(([, field]) => field !== undefined)
  return new Map([
    [name, { name, fields: Object.fromEntries(declared) as FieldsJson, indexes: [] }],
  ])
}

function indexChanges(tables: TableChange): SchemaChange[] {
  const { before, after, comparison } = tables
  const added = missingIn(before, after)
  const removed = missingIn(after, before)
  const looked = (index: IndexManifest, read: TableManifest, written: TableManifest): Outcome =>
    index.unique && comparison.mayViolate(index, { read, written, hidden: 'any' })
      ? 'documents'
      : 'allowed'
  return [
    ...added.map((index) => ({
      ...indexChange(tables, index, 'is added'),
      promote: looked(index, after, before),
    })),
    ...removed.map((index) => ({
      ...indexChange(tables, index, 'is removed'),
      rollback: looked(index, before, after),
    })),
  ]
}

function indexChange(
  { before, refusals }: TableChange,
  { name, unique }: IndexManifest,
  verb: 'is added' | 'is removed',
): SchemaChange {
  const change = `the ${unique ? 'unique ' : ''}index ${verb}`
  const found = refusals.filter((refusal) => refusal.path === name && refusal.change === change)
  return {
    table: before.name,
    path: name,
    change,
    promote: 'allowed',
    rollback: 'allowed',
    refusals: found.map(refusalText),
  }
}

function missingIn(one: TableManifest, other: TableManifest): IndexManifest[] {
  const known = new Set(one.indexes.map((index) => JSON.stringify(index)))
  return other.indexes.filter((index) => !known.has(JSON.stringify(index)))
}
