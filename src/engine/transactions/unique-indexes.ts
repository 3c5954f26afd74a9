/** Checks unique indexes: a written document must be the only one with its key. */
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import { uniqueViolation, type Violations } from '../calls/operation-error.ts'
import type { PreparedIndex, PreparedTable } from '../tables/prepared-tables.ts'
import type { RangeInput, RangeOutput } from './ranges.ts'

interface UniqueChecks {
  range(input: RangeInput): MaybePromise<RangeOutput>
  /** Receives each violation that a write is rejected with; null before the first one. */
  violations: Violations | null
}

/** Throws OperationError where a document other than `written` has a key of `after`. */
export function checkUnique(
  checks: UniqueChecks,
  table: PreparedTable,
  written: string,
  after: ValueObject,
): MaybePromise<void> {
  return table.uniqueIndexes.reduce<MaybePromise<void>>(
    (before, index) => andThen(before, () => checkIndex(checks, table, index, { written, after })),
    undefined,
  )
}

/** Adds the interval of the key to the read set, so that a concurrent insert of it conflicts. */
function checkIndex(
  checks: UniqueChecks,
  table: PreparedTable,
  { manifest: { fields, name } }: PreparedIndex,
  { written, after }: { readonly written: string; readonly after: ValueObject },
): MaybePromise<void> {
  const equals = fields.map((field) => after.get(field))
  if (equals.includes(undefined)) return
  const found = checks.range({
    table: table.manifest.name,
    index: name,
    equal: equals.map((value) => JSON.parse(encodeStored(value!)) as unknown),
    order: 'asc',
    limit: 2,
  })
  return andThen(found, ({ documents }) => {
    if (documents.every(({ id }) => id === written)) return
    const violation = uniqueViolation({ table: table.manifest.name, index: name }, fields)
    checks.violations ??= new Map()
    checks.violations.set(violation.message, violation)
    throw violation
  })
}
