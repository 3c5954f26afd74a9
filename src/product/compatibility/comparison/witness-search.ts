/**
 * Looks for documents that show a gap. It tries a bounded number of small values with the checks of
 * both schemas, where a gap has several causes.
 */
import { compileProjection, type Projection } from '../../../value/projection.ts'
import { encodeStored } from '../../../value/stored.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import {
  type Check,
  compileValidator,
  type FieldsJson,
  UNKNOWN_MEMBER,
  type ValidatorJson,
} from '../../../value/validators.ts'
import { type Value, type ValueObject, valueEquals } from '../../../value/values.ts'
import type { Gap, Witness } from './gaps.ts'
import { MinimalValues } from './minimal-values.ts'
import type { StepBudget } from './steps.ts'
import { TextCoverage } from './text-coverage.ts'
import { innerOf } from './union-objects.ts'
import type { Part } from './value-kinds.ts'

/** The reads and writes of documents of one table by a Release with a schema. */
export class DocumentRules {
  readonly #projection: Projection
  readonly #read: Check
  readonly #write: Check

  constructor(fields: FieldsJson) {
    const json: ValidatorJson = { type: 'object', fields }
    this.#projection = compileProjection(fields)
    this.#read = compileValidator(json, { coerce: false, unknown: 'as-read' })
    // Operators write exact types too (product/data-admin).
    this.#write = compileValidator(json, { coerce: false, unknown: 'as-kept' })
  }

  reads(stored: ValueObject): boolean {
    return succeeds(() => this.#read(this.#projection.read(stored), '$'))
  }

  /** Returns what is stored; null if the write is rejected. */
  write(before: ValueObject | null, written: ValueObject): ValueObject | null {
    try {
      const checked = this.#write(written, '$') as ValueObject
      return this.#projection.keep(before, checked, '$')
    } catch (error) {
      if (error instanceof ValidationError) return null
      throw error
    }
  }
}

interface Kept {
  readonly reader: Part
  readonly writer: Part
  readonly written: { readonly fields: FieldsJson }
}

/** Maximum number of values that are tried before and after a write. */
const TRIES_MAX = 40
/** Maximum number of items that an example may need. */
const ITEMS_MAX = 20_000
/** Steps of compiling and running a check for each character of the schema. */
const CHARACTER_STEPS = 0.5

export class WitnessSearch {
  readonly minimal: MinimalValues
  readonly #budget: StepBudget
  readonly #rules = new Map<ValidatorJson, Map<boolean, DocumentRules>>()

  constructor(budget: StepBudget) {
    this.#budget = budget
    this.minimal = new MinimalValues(budget, new TextCoverage(budget))
  }

  array(items: ValidatorJson, length: number): Witness | null {
    const values = this.#repeated(items, length)
    return values === null ? null : { written: values }
  }

  record(values: ValidatorJson, length: number): Witness | null {
    const repeated = this.#repeated(values, length)
    return repeated === null ? null : { written: keyed(repeated) }
  }

  #repeated(json: ValidatorJson, length: number): Value[] | null {
    if (length > ITEMS_MAX) return null
    const value = this.minimal.of(json)
    this.#budget.spend(length)
    return value === undefined ? null : Array.from({ length }, () => value)
  }

  /** Returns an object with all fields. */
  fullObject(fields: FieldsJson): Map<string, Value> | undefined {
    const object = new Map<string, Value>()
    for (const [name, field] of Object.entries(fields)) {
      const value = this.minimal.of(innerOf(field))
      if (value === undefined) return undefined
      object.set(name, value)
    }
    return object
  }

  /** Returns a minimal object with the fields in which the others are not minimal. */
  mergedObjects(fields: FieldsJson, others: readonly Value[]): Value | null {
    const minimal = this.minimal.object(fields)
    if (minimal === null) return null
    const merged = new Map(minimal)
    for (const other of others) {
      if (!(other instanceof Map)) continue
      for (const [name, value] of other as ValueObject) {
        const usual = minimal.get(name)
        if (usual === undefined || !valueEquals(usual, value)) merged.set(name, value)
      }
    }
    return merged
  }

  /** Returns a value of one gap, or of all together, that the reader rejects. */
  rejectedByAll(
    reader: Part,
    gaps: readonly Gap[],
    merge: (written: readonly Value[]) => Value | null,
  ): Witness | null {
    const values: Value[] = []
    for (const gap of gaps.slice(0, TRIES_MAX)) {
      const written = gap.witness()?.written
      if (written !== undefined) values.push(written)
    }
    const rules = this.#rulesOf(reader)
    const rejected = [...values, merge(values)].find(
      (value) => value !== null && !rules.reads(new Map([[FIELD, value]])),
    )
    return rejected === undefined ? null : { written: rejected! }
  }

  /** Looks for an object that is of no member: a new one, or one of a member before the write. */
  keptObject(kept: Kept & { readonly possible: readonly FieldsJson[] }): Witness | null {
    const minimal = this.minimal.object(kept.written.fields) ?? new Map()
    const seen = this.#variants(kept.written.fields)
    const befores = kept.possible.map((fields) => {
      const known = seen.map((object) => {
        return new Map([...object].filter(([name]) => Object.hasOwn(fields, name)))
      })
      return this.#variants(fields).flatMap((object) => [
        object,
        ...[minimal, ...known].map((each) => new Map([...object, ...each])),
      ])
    })
    const written = [...seen, ...this.#withUnknown(kept.written.fields)]
    return this.#found(kept, alternating(befores), written)
  }

  /** Looks for a record with as many entries as it may have, to which a write adds one. */
  overfullRecord({
    values,
    maximumItems,
    ...kept
  }: Kept & { readonly values: ValidatorJson; readonly maximumItems: number }): Witness | null {
    const minimal = this.minimal.object(kept.written.fields)
    const full = this.fullObject(kept.written.fields)
    if (minimal === null || full === undefined) return null
    const others = this.#repeated(values, Math.max(0, maximumItems - minimal.size))
    if (others === null) return null
    return this.#found(kept, [new Map([...minimal, ...keyed(others)])], [full])
  }

  #found(
    { reader, writer }: Kept,
    befores: readonly ValueObject[],
    written: readonly ValueObject[],
  ): Witness | null {
    const read = this.#rulesOf(reader)
    const write = this.#rulesOf(writer)
    const documents = befores.map((value) => new Map([[FIELD, value]]))
    const valid = documents.filter((each) => read.reads(each) && write.reads(each))
    for (const before of [null, ...valid.slice(0, TRIES_MAX)]) {
      for (const value of written.slice(0, TRIES_MAX)) {
        this.#budget.spend(100)
        const stored = write.write(before, new Map([[FIELD, value]]))
        if (stored === null || read.reads(stored)) continue
        if (before === null) return { written: value }
        return { before: before.get(FIELD)!, written: value }
      }
    }
    return null
  }

  /** Returns objects that keep an unknown member of an open union. */
  #withUnknown(fields: FieldsJson): ValueObject[] {
    const minimal = this.minimal.object(fields)
    if (minimal === null) return []
    return Object.entries(fields)
      .filter(([, field]) => isOpen(innerOf(field)))
      .map(([name]) => new Map([...minimal, [name, UNKNOWN_MEMBER]]))
  }

  /** Returns the minimal object, the full one, and for each member of a field one that has it. */
  #variants(fields: FieldsJson): ValueObject[] {
    const minimal = this.minimal.object(fields)
    const full = this.fullObject(fields)
    const variants: ValueObject[] = []
    if (minimal !== null) variants.push(minimal)
    if (full !== undefined) variants.push(full)
    for (const [name, field] of Object.entries(fields)) {
      for (const json of membersOf(innerOf(field))) {
        if (variants.length >= TRIES_MAX) return variants
        const value = this.minimal.of(json)
        if (value === undefined) continue
        if (minimal !== null) variants.push(new Map(minimal).set(name, value))
        if (full !== undefined) variants.push(new Map(full).set(name, value))
      }
    }
    return variants
  }

  /** A part outside a view is read as an item of an array is. */
  #rulesOf({ json, isView }: Part): DocumentRules {
    const known = this.#rules.get(json) ?? new Map<boolean, DocumentRules>()
    this.#rules.set(json, known)
    let rules = known.get(isView)
    if (rules === undefined) {
      this.#budget.spend(JSON.stringify(json).length * CHARACTER_STEPS)
      const part: ValidatorJson = isView ? json : { type: 'union', members: [json] }
      rules = new DocumentRules({ [FIELD]: part })
      known.set(isView, rules)
    }
    return rules
  }
}

const FIELD = 'part'

function keyed(values: readonly Value[]): ValueObject {
  return new Map(values.map((value, i) => [`a${i}`, value]))
}

/** Returns different objects, in turn from each list. */
function alternating(lists: readonly (readonly ValueObject[])[]): ValueObject[] {
  const objects = new Map<string, ValueObject>()
  const most = Math.max(0, ...lists.map((list) => list.length))
  for (let i = 0; i < most; i++) {
    for (const list of lists) {
      const object = list[i]
      if (object !== undefined) objects.set(encodeStored(object), object)
    }
  }
  return [...objects.values()]
}

function isOpen(json: ValidatorJson): boolean {
  return json.type === 'open' || (json.type === 'nullable' && isOpen(json.inner))
}

function membersOf(json: ValidatorJson): readonly ValidatorJson[] {
  switch (json.type) {
    case 'union':
      return json.members
    case 'open':
      return membersOf(json.inner)
    case 'nullable':
      return [{ type: 'null' }, json.inner]
    case 'boolean':
      return [true, false].map((boolean) => ({ type: 'literal', value: { boolean } }))
    default:
      return [json]
  }
}

function succeeds(check: () => unknown): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof ValidationError) return false
    throw error
  }
}
