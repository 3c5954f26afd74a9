/** Unique indexes: a document that is written must be the only one with its key. */
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import { uniqueViolation, type Violations } from '../invocations/operation-error.ts'
import type { PreparedIndex, PreparedTable } from '../releases/prepared-release.ts'
import type { RangeInput, RangeOutput } from './ranges.ts'

interface Reads {
  range(input: RangeInput): MaybePromise<RangeOutput>
  /** Gains each violation that a write is rejected with; null while there was none. */
  violations: Violations | null
}

/** One index after the other. Raises a Refusal where another document than `written` has a key. */
export function checkUnique(
  reads: Reads,
  table: PreparedTable,
  written: string,
  after: ValueObject,
): MaybePromise<void> {
  return table.uniqueIndexes.reduce<MaybePromise<void>>(
    (before, index) => andThen(before, () => checkIndex(reads, table, index, { written, after })),
    undefined,
  )
}

/** Reads the place of the key, so that a concurrent insert there conflicts. */
function checkIndex(
  reads: Reads,
  table: PreparedTable,
  { manifest: { fields, name } }: PreparedIndex,
  { written, after }: { readonly written: string; readonly after: ValueObject },
): MaybePromise<void> {
  const equals = fields.map((field) => after.get(field))
  if (equals.includes(undefined)) return
  const found = reads.range({
    table: table.manifest.name,
    index: name,
    equal: equals.map((value) => JSON.parse(encodeStored(value!)) as unknown),
    order: 'asc',
    limit: 2,
  })
  return andThen(found, ({ documents }) => {
    if (documents.every(({ id }) => id === written)) return
    const violation = uniqueViolation({ table: table.manifest.name, index: name }, fields)
    reads.violations ??= new Map()
    reads.violations.set(violation.message, violation)
    throw violation
  })
}
