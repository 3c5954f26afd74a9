/** Gaps between scalar values: what a writer's kinds have and a reader's kinds lack. */
import type { ValidatorJson } from '../../../value/validators.ts'
import { Timestamp, type Value } from '../../../value/values.ts'
import {
  type Bound,
  boundChanged,
  type Change,
  type Gap,
  PATTERN_CHANGED,
  shownText,
  typeChanged,
  valueRejected,
} from './gaps.ts'
import {
  exampleUncovered,
  FLOATS,
  INTEGERS,
  type Interval,
  LENGTHS,
  type Order,
} from './intervals.ts'
import { exampleId } from './minimal-values.ts'
import type { StepBudget } from './steps.ts'
import type { TextCoverage } from './text-coverage.ts'
import type { Kinds, ValidatorOf } from './value-kinds.ts'

/** A reader's and a writer's kinds at one path. */
export interface Compared {
  readonly path: string
  readonly reader: Kinds
  readonly writer: Kinds
  readonly readerJson: ValidatorJson
  readonly writerJson: ValidatorJson
}

/** Maximum length of the bytes of an example. */
const BYTES_MAX = 100_000

export function gapOf(path: string, change: Change, written: Value | undefined): Gap {
  return { path, change, witness: () => (written === undefined ? null : { written }) }
}

/** Returns the change of a reader that has no values of this type at all. */
export function typeMissing(compared: Compared, shown: string): Change {
  const { reader, writer, readerJson, writerJson } = compared
  if (reader.count === 1 && writer.count === 1) {
    return typeChanged(typeName(readerJson), typeName(writerJson))
  }
  return valueRejected(shown, isUnion(compared))
}

/** Returns whether an open union is the remedy of a value that is added. */
export function isUnion({ readerJson }: Pick<Compared, 'readerJson'>): boolean {
  const { type } = withoutNull(readerJson)
  return type === 'union' || type === 'literal'
}

function typeName(json: ValidatorJson): string {
  const single = withoutNull(json)
  return single.type === 'id' ? `an ID of ${single.table}` : single.type
}

function withoutNull(json: ValidatorJson): ValidatorJson {
  return json.type === 'nullable' ? withoutNull(json.inner) : json
}

/** Returns the first gap between scalar kinds. */
export function scalarGap(
  compared: Compared,
  { budget, texts }: { budget: StepBudget; texts: TextCoverage },
): Gap | null {
  const { path, reader, writer } = compared
  const { integers, floats, bytes } = writer
  budget.spend(integers.length + floats.length + bytes.length + writer.literals.size)
  if (writer.null && !reader.null) {
    return gapOf(path, valueRejected('null', isUnion(compared)), null)
  }
  if (writer.timestamp && !reader.timestamp) {
    return gapOf(path, typeMissing(compared, 'a timestamp'), new Timestamp(0n))
  }
  return (
    booleanGap(compared) ??
    numberGap(compared, 'int64', INTEGERS, { written: integers, read: reader.integers, budget }) ??
    numberGap(compared, 'float64', FLOATS, { written: floats, read: reader.floats, budget }) ??
    bytesGap(compared) ??
    textGap(compared, texts) ??
    literalGap(compared, texts) ??
    idGap(compared)
  )
}

function booleanGap(compared: Compared): Gap | null {
  const { path, reader, writer } = compared
  for (const value of writer.booleans) {
    if (reader.booleans.has(value)) continue
    const change =
      writer.booleans.size > 1 && reader.booleans.size === 0
        ? typeMissing(compared, 'boolean')
        : valueRejected(String(value), isUnion(compared))
    return gapOf(path, change, value)
  }
  return null
}

function numberGap<T extends number | bigint>(
  compared: Compared,
  type: 'int64' | 'float64',
  order: Order<T>,
  {
    written,
    read,
    budget,
  }: { written: readonly Interval<T>[]; read: readonly Interval<T>[]; budget: StepBudget },
): Gap | null {
  for (const each of written) {
    // One value needs no order of the others.
    const isLiteral = each.minimum !== null && each.minimum === each.maximum
    budget.spend(read.length)
    if (isLiteral && read.some((of) => isWithin(of, each.minimum!))) continue
    const value = exampleUncovered(each, read, order)
    if (value === null) continue
    const change = isLiteral
      ? valueRejected(String(value), isUnion(compared))
      : read.length === 0
        ? typeMissing(compared, type)
        : read.length > 1
          ? valueRejected(String(value), isUnion(compared))
          : movedBound(read[0]!, each, value, { below: 'minimum', above: 'maximum' })
    return gapOf(compared.path, change, value)
  }
  return null
}

function isWithin<T extends number | bigint>({ minimum, maximum }: Interval<T>, value: T): boolean {
  return (minimum === null || value >= minimum) && (maximum === null || value <= maximum)
}

function movedBound<T extends number | bigint>(
  read: Interval<T>,
  written: Interval<T>,
  value: T,
  { below, above }: { below: Bound; above: Bound },
): Change {
  return read.minimum !== null && value < read.minimum
    ? boundChanged(below, read.minimum, written.minimum)
    : boundChanged(above, read.maximum, written.maximum)
}

function bytesGap(compared: Compared): Gap | null {
  const { path, reader, writer } = compared
  for (const each of writer.bytes) {
    const length = exampleUncovered(each, reader.bytes, LENGTHS)
    if (length === null) continue
    const longest = reader.bytes.reduce<number | null>(
      (most, { maximum }) => Math.max(most ?? 0, maximum!),
      null,
    )
    const change =
      longest === null
        ? typeMissing(compared, 'bytes')
        : boundChanged('maximum length', longest, each.maximum)
    return gapOf(path, change, length > BYTES_MAX ? undefined : new Uint8Array(length))
  }
  return null
}

function textGap(compared: Compared, texts: TextCoverage): Gap | null {
  const { path, reader, writer } = compared
  for (const each of writer.texts) {
    const uncovered = texts.uncovered(each, reader)
    if (uncovered === null) continue
    const { text } = uncovered
    const [read, ...others] = reader.texts
    const change =
      read === undefined
        ? typeMissing(compared, 'string')
        : others.length > 0
          ? valueRejected(text === null ? 'string' : shownText(text), isUnion(compared))
          : textChanged(read, each)
    return gapOf(path, change, text ?? undefined)
  }
  return null
}

function textChanged(read: ValidatorOf<'string'>, written: ValidatorOf<'string'>): Change {
  if ((read.maximumLength ?? Infinity) < (written.maximumLength ?? Infinity)) {
    return boundChanged('maximum length', read.maximumLength!, written.maximumLength ?? null)
  }
  if ((read.minimumLength ?? 0) > (written.minimumLength ?? 0)) {
    return boundChanged('minimum length', read.minimumLength!, written.minimumLength ?? null)
  }
  return PATTERN_CHANGED
}

function literalGap(compared: Compared, texts: TextCoverage): Gap | null {
  const { path, reader, writer } = compared
  for (const literal of writer.literals) {
    if (texts.accepts(reader, literal)) continue
    return gapOf(path, valueRejected(shownText(literal), isUnion(compared)), literal)
  }
  return null
}

function idGap(compared: Compared): Gap | null {
  const { path, reader, writer } = compared
  for (const table of writer.ids) {
    if (reader.ids.has(table)) continue
    return gapOf(path, typeMissing(compared, `an ID of ${table}`), exampleId(table))
  }
  return null
}
