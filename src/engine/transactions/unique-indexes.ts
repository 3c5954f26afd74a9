/** Checks unique indexes: a written document must be the only one with its key. */
import { indexedValues, type KeyInterval, keyInterval } from '../../documents/keys.ts'
import type { PhysicalIndex } from '../../documents/store.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import type { ValueObject } from '../../value/values.ts'
import { uniqueViolation, type Violations } from '../calls/operation-error.ts'
import type { PreparedIndex, PreparedTable } from '../tables/prepared-tables.ts'
import type { RangeInput, RangeOutput } from './ranges.ts'

interface UniqueChecks {
  rangeWithin(
    table: PreparedTable,
    physical: PhysicalIndex,
    interval: KeyInterval,
    input: Pick<RangeInput, 'order' | 'limit'>,
  ): MaybePromise<RangeOutput>
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
  { manifest: { fields, name }, physical }: PreparedIndex,
  { written, after }: { readonly written: string; readonly after: ValueObject },
): MaybePromise<void> {
  const equals = indexedValues(physical, after)
  if (equals.includes(undefined)) return
  const interval = keyInterval(physical, { equals })
  const found = checks.rangeWithin(table, physical, interval, { order: 'asc', limit: 2 })
  return andThen(found, ({ documents }) => {
    if (documents.every(({ id }) => id === written)) return
    const violation = uniqueViolation({ table: table.manifest.name, index: name }, fields)
    checks.violations ??= new Map()
    checks.violations.set(violation.message, violation)
    throw violation
  })
}
