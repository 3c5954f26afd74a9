/**
 * The kinds of values that a validator accepts: unions, nullable values and open unions are sets of
 * kinds. One schema reads what another writes if each kind that is written is read.
 */
import type { FieldsJson, LiteralJson, ValidatorJson } from '../../../value/validators.ts'
import { type Interval, overlap } from './intervals.ts'
import type { StepBudget } from './steps.ts'

export type ValidatorOf<T extends ValidatorJson['type']> = Extract<ValidatorJson, { type: T }>

/** A validator where a document has it. */
export interface Part {
  readonly json: ValidatorJson
  /**
   * Declared object fields lead to it: a projection hides fields there, and returns them to what is
   * written (value/projection.ts).
   */
  readonly isView: boolean
}

/** The meaning of an open union: its members, which a Release writes, or any value, as it reads. */
export type Role = 'writes' | 'reads'

export interface Kinds {
  /** Every value; then no other kind matters. */
  any: boolean
  null: boolean
  timestamp: boolean
  readonly booleans: Set<boolean>
  /** Literals are intervals of one value. */
  readonly integers: Interval<bigint>[]
  readonly floats: Interval<number>[]
  readonly bytes: Interval<number>[]
  readonly texts: ValidatorOf<'string'>[]
  readonly literals: Set<string>
  readonly ids: Set<string>
  readonly arrays: ValidatorOf<'array'>[]
  readonly records: ValidatorOf<'record'>[]
  readonly objects: FieldsJson[]
  /** The fields of an object at a view; such a part has no other objects. */
  view: FieldsJson | null
  /** Validators without unions and nullable ones: the words for changes depend on the number. */
  count: number
}

/** Remembers kinds, because unions are compared with many others. */
export class KindsOfParts {
  readonly #budget: StepBudget
  readonly #known = new Map<ValidatorJson, Map<string, Kinds>>()

  constructor(budget: StepBudget) {
    this.#budget = budget
  }

  of({ json, isView }: Part, role: Role): Kinds {
    const variants = this.#known.get(json) ?? new Map<string, Kinds>()
    this.#known.set(json, variants)
    const variant = `${role}:${isView}`
    let kinds = variants.get(variant)
    if (kinds === undefined) {
      kinds = noKinds()
      this.#add(kinds, json, isView, role)
      variants.set(variant, kinds)
    }
    return kinds
  }

  #add(kinds: Kinds, json: ValidatorJson, isView: boolean, role: Role): void {
    this.#budget.spend(1)
    switch (json.type) {
      case 'union':
        for (const member of json.members) this.#add(kinds, member, false, role)
        return
      case 'nullable':
        kinds.null = true
        this.#add(kinds, json.inner, isView, role)
        return
      case 'open':
        if (role === 'reads') kinds.any = true
        else this.#add(kinds, json.inner, false, role)
        return
      default:
        kinds.count += 1
        addSingle(kinds, json, isView)
    }
  }
}

type SingleJson = Exclude<ValidatorJson, { type: 'union' | 'nullable' | 'open' }>

function addSingle(kinds: Kinds, json: SingleJson, isView: boolean): void {
  switch (json.type) {
    case 'any':
      kinds.any = true
      return
    case 'null':
      kinds.null = true
      return
    case 'timestamp':
      kinds.timestamp = true
      return
    case 'boolean':
      kinds.booleans.add(false).add(true)
      return
    case 'literal':
      addLiteral(kinds, json.value)
      return
    case 'int64':
      kinds.integers.push({ minimum: bigOf(json.minimum), maximum: bigOf(json.maximum) })
      return
    case 'float64':
      kinds.floats.push({ minimum: json.minimum ?? null, maximum: json.maximum ?? null })
      return
    case 'bytes':
      kinds.bytes.push({ minimum: 0, maximum: json.maximumLength ?? null })
      return
    case 'string':
      kinds.texts.push(json)
      return
    case 'id':
      kinds.ids.add(json.table)
      return
    case 'array':
      kinds.arrays.push(json)
      return
    case 'record':
      kinds.records.push(json)
      return
    case 'object':
      if (isView) kinds.view = json.fields
      else kinds.objects.push(json.fields)
  }
}

function addLiteral(kinds: Kinds, literal: LiteralJson): void {
  if ('string' in literal) kinds.literals.add(literal.string)
  else if ('boolean' in literal) kinds.booleans.add(literal.boolean)
  else {
    const value = BigInt(literal.int64)
    kinds.integers.push({ minimum: value, maximum: value })
  }
}

function bigOf(text: string | undefined): bigint | null {
  return text === undefined ? null : BigInt(text)
}

function noKinds(): Kinds {
  return {
    any: false,
    null: false,
    timestamp: false,
    booleans: new Set(),
    integers: [],
    floats: [],
    bytes: [],
    texts: [],
    literals: new Set(),
    ids: new Set(),
    arrays: [],
    records: [],
    objects: [],
    view: null,
    count: 0,
  }
}

export function hasObjects({ objects, records, view }: Kinds): boolean {
  return objects.length > 0 || records.length > 0 || view !== null
}

/**
 * Returns whether a value can be of both kinds. It may return true although none can, because
 * composite values and patterns are not compared.
 */
export function mayShareValues(one: Kinds, other: Kinds): boolean {
  if (one.any || other.any) return true
  return (
    (one.null && other.null) ||
    (one.timestamp && other.timestamp) ||
    hasCommon(one.booleans, other.booleans) ||
    hasCommon(one.ids, other.ids) ||
    hasCommon(one.literals, other.literals) ||
    one.integers.some((each) => other.integers.some((of) => overlap(each, of))) ||
    one.floats.some((each) => other.floats.some((of) => overlap(each, of))) ||
    (one.bytes.length > 0 && other.bytes.length > 0) ||
    mayShareTexts(one, other) ||
    (one.arrays.length > 0 && other.arrays.length > 0) ||
    (hasObjects(one) && hasObjects(other))
  )
}

function mayShareTexts(one: Kinds, other: Kinds): boolean {
  const hasTexts = ({ texts, literals }: Kinds) => texts.length > 0 || literals.size > 0
  return (one.texts.length > 0 && hasTexts(other)) || (other.texts.length > 0 && hasTexts(one))
}

function hasCommon<T>(one: ReadonlySet<T>, other: ReadonlySet<T>): boolean {
  for (const each of one) if (other.has(each)) return true
  return false
}
