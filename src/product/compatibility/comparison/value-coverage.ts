/**
 * Compares what a schema writes with what another one reads, part by part. It errs on the safe side
 * only: where it finds no gap, there is none.
 */
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../../value/validators.ts'
import { Timestamp, type Value } from '../../../value/values.ts'
import {
  ABSENCE_REJECTED,
  boundChanged,
  FIELD_UNDECLARED,
  type Gap,
  HIDDEN_MIXED,
  HIDDEN_UNKNOWN,
  REQUIRED_ADDED,
  valueRejected,
  type Witness,
} from './gaps.ts'
import { type MinimalValues, otherId } from './minimal-values.ts'
import { type Compared, gapOf, isUnion, scalarGap, typeMissing } from './scalar-gaps.ts'
import type { StepBudget } from './steps.ts'
import { TextCoverage } from './text-coverage.ts'
import { isPossible, mayKeep, splitFields } from './union-objects.ts'
import { KindsOfParts, type Part, type Role, type ValidatorOf } from './value-kinds.ts'
import type { WitnessSearch } from './witness-search.ts'

/** The fields of an object, and whether a projection stands before it. */
export interface Fields {
  readonly fields: FieldsJson
  readonly isView: boolean
}

export interface CoverageOptions {
  readonly budget: StepBudget
  /** Finds the witness of a gap between several alternatives. */
  readonly search: WitnessSearch
  /**
   * The values of fields that the writer does not declare, and of its open unions: values that the
   * reader accepts, since both could read the document before; or any values.
   */
  readonly hidden: 'valid' | 'any'
}

/** Maximum number of cases into which one object is split. */
const CASES_MAX = 64

export class ValueCoverage {
  readonly #budget: StepBudget
  readonly #search: WitnessSearch
  readonly #hidden: 'valid' | 'any'
  readonly #writes: Role
  readonly #kinds: KindsOfParts
  readonly #texts: TextCoverage
  readonly #minimal: MinimalValues
  /** The alternative of each list from which the next look-up starts: lists keep their order. */
  readonly #startFrom = new Map<object, number>()

  constructor({ budget, search, hidden }: CoverageOptions) {
    this.#budget = budget
    this.#search = search
    this.#hidden = hidden
    // A document that the writer can read may have any value in its open unions.
    this.#writes = hidden === 'any' ? 'reads' : 'writes'
    this.#kinds = new KindsOfParts(budget)
    this.#texts = new TextCoverage(budget)
    this.#minimal = search.minimal
  }

  /** Yields the first gap of each field. */
  *fields(reader: Fields, writer: Fields, path: string): Generator<Gap> {
    const written = Object.entries(writer.fields)
    const read = Object.entries(reader.fields)
    this.#budget.spend(written.length + read.length)
    for (const [name, field] of written) {
      const gap = this.#field(reader, writer, { name, field, path: `${path}.${name}` })
      if (gap !== null) yield gap
    }
    for (const [name, field] of read) {
      if (Object.hasOwn(writer.fields, name)) continue
      const gap = this.#unwritten(writer, field, `${path}.${name}`)
      if (gap !== null) yield gap
    }
  }

  #field(
    reader: Fields,
    writer: Fields,
    { name, field, path }: { name: string; field: FieldsJson[string]; path: string },
  ): Gap | null {
    const json = required(field)
    if (!Object.hasOwn(reader.fields, name)) {
      if (reader.isView) return null
      const written = () => this.#minimal.of(json)
      return this.#inObject(reader, writer, name, {
        path,
        change: FIELD_UNDECLARED,
        witness: () => witnessOf(written()),
      })
    }
    const read = reader.fields[name]!
    if (read.type !== 'optional' && this.#mayBeAbsent(field)) {
      return {
        path,
        change: ABSENCE_REJECTED,
        witness: () => witnessOf(this.#minimal.object(writer.fields) ?? undefined),
      }
    }
    const gap = this.#covers(
      { json: required(read), isView: reader.isView },
      { json, isView: writer.isView },
      path,
    )
    return gap === null ? null : this.#inObject(reader, writer, name, gap)
  }

  /** A write stores the default of a field, and a document of before may lack the field. */
  #mayBeAbsent(field: FieldsJson[string]): boolean {
    if (field.type !== 'optional') return false
    return field.default === undefined || this.#hidden === 'any'
  }

  #unwritten(writer: Fields, field: ValidatorJson | OptionalJson, path: string): Gap | null {
    if (field.type !== 'optional') {
      return {
        path,
        change: REQUIRED_ADDED,
        witness: () => witnessOf(this.#minimal.object(writer.fields) ?? undefined),
      }
    }
    if (this.#hidden === 'valid' || !writer.isView) return null
    const { any } = this.#kinds.of({ json: field.inner, isView: true }, 'reads')
    return any ? null : { path, change: HIDDEN_UNKNOWN, witness: () => null }
  }

  /** Puts the witness of a field into a document of the writer. */
  #inObject(reader: Fields, writer: Fields, name: string, gap: Gap): Gap {
    return {
      ...gap,
      witness: () => {
        const inner = gap.witness()
        const object = this.#minimal.object(writer.fields)
        if (inner === null || object === null) return null
        const written = new Map(object).set(name, inner.written)
        if (inner.before === undefined) return { written }
        const hidden = this.#minimal.object(reader.fields) ?? []
        return { written, before: new Map([...hidden, ...object]).set(name, inner.before) }
      },
    }
  }

  #covers(readerPart: Part, writerPart: Part, path: string): Gap | null {
    this.#budget.spend(1)
    const reader = this.#kinds.of(readerPart, 'reads')
    if (reader.any) return null
    const writer = this.#kinds.of(writerPart, this.#writes)
    const compared: Compared = {
      path,
      reader,
      writer,
      readerJson: readerPart.json,
      writerJson: writerPart.json,
    }
    if (writer.any) return this.#anyGap(compared)
    return (
      scalarGap(compared, { budget: this.#budget, texts: this.#texts }) ??
      this.#arrays(compared, readerPart) ??
      this.#records(compared, readerPart) ??
      this.#objects(compared, readerPart, writerPart)
    )
  }

  #anyGap(compared: Compared): Gap {
    const { path, reader } = compared
    const value: Value = !reader.null
      ? null
      : reader.texts.length + reader.literals.size === 0
        ? 'a'
        : reader.booleans.size < 2
          ? !reader.booleans.has(true)
          : reader.integers.length === 0
            ? 0n
            : reader.timestamp
              ? otherId(reader.ids)
              : new Timestamp(0n)
    return gapOf(path, typeMissing(compared, 'any value'), value)
  }

  #arrays(compared: Compared, reader: Part): Gap | null {
    const { path, writer } = compared
    const read = compared.reader.arrays
    for (const written of writer.arrays) {
      if (read.length === 0) return gapOf(path, typeMissing(compared, 'array'), [])
      if (written.maximumItems === 0) continue
      const gaps = this.#alternatives(read, (each) => this.#array(each, written, path))
      if (gaps === null) continue
      return this.#nearest(compared, reader, gaps, (all) => {
        const items = all.flatMap((value) => value as Value[])
        return items.length > (written.maximumItems ?? items.length) ? null : items
      })
    }
    return null
  }

  #array(read: ValidatorOf<'array'>, written: ValidatorOf<'array'>, path: string): Gap | null {
    const most = written.maximumItems ?? null
    if (read.maximumItems !== undefined && (most === null || most > read.maximumItems)) {
      const length = read.maximumItems + 1
      return {
        path,
        change: boundChanged('maximum items', read.maximumItems, most),
        witness: () => this.#search.array(written.items, length),
      }
    }
    const gap = this.#covers(whole(read.items), whole(written.items), `${path}[]`)
    return gap === null ? null : wrapped(gap, (item) => [item])
  }

  #records(compared: Compared, reader: Part): Gap | null {
    const { path, writer } = compared
    const read = compared.reader
    for (const written of writer.records) {
      if (written.maximumItems === 0) {
        const gap = this.#object(compared, reader, { fields: {}, isView: false })
        if (gap !== null) return gap
        continue
      }
      if (read.view !== null) {
        const gap = this.#recordInView(read.view, written, path)
        if (gap !== null) return gap
        continue
      }
      if (read.records.length === 0) {
        const object = () => this.#search.record(written.values, 1)
        return { path, change: typeMissing(compared, 'record'), witness: object }
      }
      const gaps = this.#alternatives(read.records, (each) => this.#record(each, written, path))
      if (gaps === null) continue
      return this.#nearest(compared, reader, gaps, (all) => {
        const values = all.flatMap((value) => [...(value as Map<string, Value>).values()])
        if (values.length > (written.maximumItems ?? values.length)) return null
        return new Map(values.map((value, i) => [`a${i}`, value]))
      })
    }
    return null
  }

  #record(read: ValidatorOf<'record'>, written: ValidatorOf<'record'>, path: string): Gap | null {
    const most = written.maximumItems ?? null
    if (read.maximumItems !== undefined && (most === null || most > read.maximumItems)) {
      const length = read.maximumItems + 1
      return {
        path,
        change: boundChanged('maximum items', read.maximumItems, most),
        witness: () => this.#search.record(written.values, length),
      }
    }
    const gap = this.#covers(whole(read.values), whole(written.values), `${path}.*`)
    return gap === null ? null : wrapped(gap, (value) => new Map([['a', value]]))
  }

  /** Any name may be a key of the record, so that each declared field may have its values. */
  #recordInView(view: FieldsJson, written: ValidatorOf<'record'>, path: string): Gap | null {
    const entries = Object.entries(view)
    this.#budget.spend(entries.length)
    for (const [name, field] of entries) {
      if (field.type !== 'optional') {
        return gapOf(`${path}.${name}`, REQUIRED_ADDED, new Map())
      }
      const read = { json: field.inner, isView: true }
      const gap = this.#covers(read, whole(written.values), `${path}.${name}`)
      if (gap !== null) return wrapped(gap, (value) => new Map([[name, value]]))
    }
    return null
  }

  #objects(compared: Compared, reader: Part, writerPart: Part): Gap | null {
    const { writer } = compared
    for (const fields of writer.objects) {
      const gap = this.#object(compared, reader, { fields, isView: false })
      if (gap !== null) return gap
    }
    if (writer.view === null) return null
    const written = { fields: writer.view, isView: true }
    if (compared.reader.view !== null) return this.#object(compared, reader, written)
    return this.#keptObject(compared, reader, writerPart, written)
  }

  /** Compares an object that a writer stores as a whole, or both as a view. */
  #object(compared: Compared, reader: Part, written: Fields, splits = CASES_MAX): Gap | null {
    const { path } = compared
    const read = compared.reader
    if (read.view !== null) {
      return firstOf(this.fields({ fields: read.view, isView: true }, written, path))
    }
    const alternatives = [...read.objects, ...read.records]
    if (alternatives.length === 0) {
      const object = this.#minimal.object(written.fields) ?? undefined
      return gapOf(path, typeMissing(compared, 'object'), object)
    }
    const gaps = this.#alternatives(read.objects, (fields) => {
      return firstOf(this.fields({ fields, isView: false }, written, path))
    })
    if (gaps === null) return null
    const others = this.#alternatives(read.records, (each) => this.#inRecord(each, written, path))
    if (others === null) return null
    // A value that an open union does not know is of none of the cases.
    const isSplit = alternatives.length > 1 && this.#hidden === 'valid'
    const cases = isSplit ? splitFields(written.fields, read.objects) : []
    if (cases.length > 0 && cases.length <= splits) {
      this.#budget.spend(cases.length * Object.keys(written.fields).length)
      const left = Math.floor(splits / cases.length)
      for (const fields of cases) {
        const gap = this.#object(compared, reader, { ...written, fields }, left)
        if (gap !== null) return gap
      }
      return null
    }
    return this.#nearest(compared, reader, [...gaps, ...others], (all) => {
      return this.#search.mergedObjects(written.fields, all)
    })
  }

  #inRecord(read: ValidatorOf<'record'>, { fields, isView }: Fields, path: string): Gap | null {
    const entries = Object.entries(fields)
    this.#budget.spend(entries.length)
    for (const [name, field] of entries) {
      const part = { json: required(field), isView }
      const gap = this.#covers(whole(read.values), part, `${path}.${name}`)
      if (gap === null) continue
      const reader = { fields: {}, isView: false }
      return this.#inObject(reader, { fields, isView }, name, gap)
    }
    if (entries.length <= (read.maximumItems ?? entries.length)) return null
    const change = boundChanged('maximum items', read.maximumItems!, entries.length)
    return { path, change, witness: () => witnessOf(this.#search.fullObject(fields)) }
  }

  /**
   * Compares an object that the writer sees through a projection with a whole that the reader sees.
   * What the writer returns to a document may be of another member than what it writes.
   */
  #keptObject(compared: Compared, reader: Part, writer: Part, written: Fields): Gap | null {
    const { path } = compared
    const { objects, records } = compared.reader
    if (this.#hidden === 'any') return { path, change: HIDDEN_UNKNOWN, witness: () => null }
    const kindsOf = (part: Part) => this.#kinds.of(part, 'reads')
    this.#budget.spend(objects.length * Object.keys(written.fields).length)
    const possible = objects.filter((fields) => isPossible(fields, written.fields, kindsOf))
    const [only, ...others] = [...possible, ...records]
    const isKept = mayKeep(possible, records, written.fields, kindsOf)
    if (only === undefined || !isKept) {
      return this.#object(compared, reader, { ...written, isView: false })
    }
    // An object that fitted a member still does after each write that fits this member.
    const gap =
      firstFound(possible, (fields) =>
        firstOf(this.fields({ fields, isView: false }, written, path)),
      ) ??
      firstFound(
        records,
        (record) =>
          this.#inRecord(record, written, path) ??
          this.#overfull(record, { reader, writer, path }, written),
      )
    if (gap === null || others.length === 0) return gap
    const witness = () => this.#search.keptObject({ reader, writer, possible, written })
    return { path, change: HIDDEN_MIXED, witness }
  }

  /** A field that the writer adds may be one more than a record may have. */
  #overfull(
    { maximumItems, values }: ValidatorOf<'record'>,
    { reader, writer, path }: { reader: Part; writer: Part; path: string },
    written: Fields,
  ): Gap | null {
    const isFixed = Object.values(written.fields).every(({ type }) => type !== 'optional')
    if (maximumItems === undefined || isFixed) return null
    const witness = () =>
      this.#search.overfullRecord({ reader, writer, written, values, maximumItems })
    return { path, change: HIDDEN_MIXED, witness }
  }

  /** Returns null if an alternative has no gap, else the gaps of all. */
  #alternatives<T>(list: readonly T[], gapWith: (alternative: T) => Gap | null): Gap[] | null {
    const gaps: Gap[] = []
    const from = this.#startFrom.get(list) ?? 0
    for (let i = 0; i < list.length; i++) {
      const at = (from + i) % list.length
      const gap = gapWith(list[at]!)
      if (gap === null) {
        this.#startFrom.set(list, at + 1)
        return null
      }
      gaps.push(gap)
    }
    return gaps
  }

  /** Returns the gap with one alternative, or one with all of several. */
  #nearest(
    compared: Compared,
    reader: Part,
    gaps: readonly Gap[],
    merge: (written: readonly Value[]) => Value | null,
  ): Gap {
    if (gaps.length === 1) return gaps[0]!
    const witness = () => this.#search.rejectedByAll(reader, gaps, merge)
    const { path } = compared
    return { path, change: valueRejected('a member', isUnion(compared)), witness }
  }
}

function whole(json: ValidatorJson): Part {
  return { json, isView: false }
}

function required(field: FieldsJson[string]): ValidatorJson {
  return field.type === 'optional' ? field.inner : field
}

function witnessOf(written: Value | undefined): Witness | null {
  return written === undefined ? null : { written }
}

function firstOf(gaps: Iterable<Gap>): Gap | null {
  for (const gap of gaps) return gap
  return null
}

function firstFound<T>(items: readonly T[], find: (item: T) => Gap | null): Gap | null {
  for (const item of items) {
    const found = find(item)
    if (found !== null) return found
  }
  return null
}

/** A gap inside a part that is always stored as a whole. */
function wrapped(gap: Gap, wrap: (written: Value) => Value): Gap {
  return {
    ...gap,
    witness: () => {
      const inner = gap.witness()
      return inner === null ? null : { written: wrap(inner.written) }
    },
  }
}
