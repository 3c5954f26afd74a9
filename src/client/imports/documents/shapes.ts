/**
 * The types that the values at one place of a collection have, and the validator that accepts
 * them. A collection is read once to learn its shape, and once more to convert it.
 */
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../../value/validators.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../../../value/values.ts'
import { isList, Reference, type SourceObject, type SourceValue } from './source-values.ts'

/** Keys of one object that become declared fields. With more it is a record. */
const OBJECT_FIELDS_MAX = 64
/** Levels of a validator, which may have 32: each level of a value has up to four. */
const DEPTH_MAX = 24
/** `__proto__` would set the prototype of the object in `schema.ts`. */
const KEY = /^(?!__proto__$)[A-Za-z_$][A-Za-z0-9_$]{0,63}$/

/** Types of which a shape has only whether they occur. */
export type PlainType = 'null' | 'boolean' | 'int64' | 'float64' | 'bytes' | 'timestamp' | 'any'

export class Shape {
  readonly #types = new Set<PlainType>()
  readonly #tables = new Set<string>()
  #hasText = false
  /** The only texts that the export declares; null if any is allowed. */
  #choices: ReadonlySet<string> | null = null
  #isOfChoices = true
  #textBytes = 0
  #items: Shape | null = null
  #object: ObjectShape | null = null

  /** Declares a type that values have although the export may contain none. */
  declare(type: PlainType | 'string'): this {
    if (type === 'string') this.#hasText = true
    else this.#types.add(type)
    return this
  }

  declareReference(table: string): this {
    this.#tables.add(table)
    return this
  }

  declareChoices(choices: readonly string[]): this {
    this.#hasText = true
    this.#choices = new Set(choices)
    return this
  }

  /** Declares a list, and returns the shape of its items. */
  items(): Shape {
    this.#items ??= new Shape()
    return this.#items
  }

  /** Declares an object, and returns the shape of its fields. */
  fields(): ObjectShape {
    this.#object ??= new ObjectShape()
    return this.#object
  }

  add(value: SourceValue): void {
    if (typeof value === 'string') this.#addText(value)
    else if (value instanceof Reference) {
      this.#tables.add(value.table)
      this.#textBytes = Math.max(this.#textBytes, value.text.length)
    } else if (isList(value)) {
      const items = this.items()
      for (const item of value) items.add(item)
    } else if (value instanceof Map) this.fields().add(value)
    else this.#types.add(plainType(value as Value))
  }

  /** Adds all that the other shape accepts. */
  merge(other: Shape): void {
    for (const type of other.#types) this.#types.add(type)
    for (const table of other.#tables) this.#tables.add(table)
    this.#hasText ||= other.#hasText
    this.#textBytes = Math.max(this.#textBytes, other.#textBytes)
    // A text of one field need not be a choice of the other one.
    if (other.#hasText) this.#isOfChoices = false
    if (other.#items !== null) this.items().merge(other.#items)
    if (other.#object !== null) this.fields().merge(other.#object)
  }

  #addText(text: string): void {
    this.#hasText = true
    this.#textBytes = Math.max(this.#textBytes, Buffer.byteLength(text))
    if (this.#choices !== null && !this.#choices.has(text)) this.#isOfChoices = false
  }

  /** Bytes of the longest text; infinite for a value that an index should not have. */
  get keyBytes(): number {
    const isPlain = this.#items === null && this.#object === null && !this.#types.has('bytes')
    return isPlain && !this.#types.has('any') ? this.#textBytes : Number.POSITIVE_INFINITY
  }

  /** Returns whether IDs stand beside other texts, so that they stay what the export has. */
  get keepsIds(): boolean {
    return this.#tables.size > 0 && this.#hasText
  }

  /** Returns the validator that accepts every value that was added. */
  validator(depth = 0): ValidatorJson {
    if (depth > DEPTH_MAX || this.#types.has('any')) return { type: 'any' }
    const members: ValidatorJson[] = []
    for (const type of ['boolean', 'int64', 'float64', 'bytes', 'timestamp'] as const) {
      if (this.#types.has(type)) members.push({ type })
    }
    if (this.#hasText) members.push(...this.#textMembers())
    else for (const table of [...this.#tables].sort()) members.push({ type: 'id', table })
    if (this.#items !== null) {
      members.push({ type: 'array', items: this.#items.validator(depth + 3) })
    }
    if (this.#object !== null) members.push(this.#object.validator(depth + 3))
    if (members.length === 0) return { type: this.#types.has('null') ? 'null' : 'any' }
    const inner: ValidatorJson = members.length === 1 ? members[0]! : { type: 'union', members }
    return this.#types.has('null') ? { type: 'nullable', inner } : inner
  }

  #textMembers(): readonly ValidatorJson[] {
    const choices = [...(this.#choices ?? [])]
    if (!this.#isOfChoices || choices.length === 0 || choices.length > OBJECT_FIELDS_MAX) {
      return [{ type: 'string' }]
    }
    return choices.map((string) => ({ type: 'literal', value: { string } }))
  }

  /** Returns the value as the validator accepts it. */
  convert(value: SourceValue): Value {
    if (value instanceof Reference) return this.#hasText ? value.text : new TypedId(value.id)
    if (isList(value)) return value.map((item) => this.items().convert(item))
    if (value instanceof Map) return this.fields().convert(value)
    return value as Value
  }
}

interface FieldShape {
  readonly shape: Shape
  count: number
  isOptional: boolean
}

/** The shape of objects: their fields, or of all values if the keys are data. */
export class ObjectShape {
  readonly #fields = new Map<string, FieldShape>()
  /** Shape of all values; null while the fields are declared one by one. */
  #values: Shape | null = null
  readonly #fieldsMax: number
  readonly #key: RegExp
  #count = 0

  /** `key` is the pattern of keys that may become declared fields. */
  constructor(fieldsMax = OBJECT_FIELDS_MAX, key = KEY) {
    this.#fieldsMax = fieldsMax
    this.#key = key
  }

  /** Returns whether the keys are data rather than fields. */
  get isRecord(): boolean {
    return this.#values !== null
  }

  get count(): number {
    return this.#count
  }

  get names(): readonly string[] {
    return [...this.#fields.keys()]
  }

  /** Declares a field, and returns its shape. */
  field(name: string, isOptional = false): Shape {
    const found = this.#fields.get(name)
    if (found !== undefined) return found.shape
    const shape = new Shape()
    this.#fields.set(name, { shape, count: 0, isOptional })
    return shape
  }

  add(object: SourceObject): void {
    this.#count += 1
    for (const [key, value] of object) {
      if (this.#values === null && !this.#fields.has(key) && !this.#takes(key)) this.#collapse()
      if (this.#values !== null) this.#values.add(value)
      else {
        this.field(key).add(value)
        this.#fields.get(key)!.count += 1
      }
    }
  }

  #takes(key: string): boolean {
    return this.#fields.size < this.#fieldsMax && this.#key.test(key)
  }

  /** Makes a record of the object: the shapes of its fields become one. */
  #collapse(): void {
    const values = new Shape()
    for (const { shape } of this.#fields.values()) values.merge(shape)
    this.#values = values
    this.#fields.clear()
  }

  /** Merges the other shape into this one. */
  merge(other: ObjectShape): void {
    this.#count += other.#count
    if (other.#values !== null && this.#values === null) this.#collapse()
    if (other.#values !== null) this.#values!.merge(other.#values)
    for (const [key, { shape, count, isOptional }] of other.#fields) {
      if (this.#values === null && !this.#fields.has(key) && !this.#takes(key)) this.#collapse()
      if (this.#values !== null) this.#values.merge(shape)
      else {
        this.field(key, isOptional).merge(shape)
        this.#fields.get(key)!.count += count
      }
    }
  }

  validator(depth: number): ValidatorJson {
    if (this.#values !== null) return { type: 'record', values: this.#values.validator(depth) }
    const fields = Object.fromEntries(
      this.names.map((name) => [name, this.fieldValidator(name, depth)]),
    ) as FieldsJson
    return { type: 'object', fields }
  }

  /** Returns the validator of a field, optional where an object lacks it. */
  fieldValidator(name: string, depth = 0): ValidatorJson | OptionalJson {
    const { shape, count, isOptional } = this.#fields.get(name)!
    const inner = shape.validator(depth)
    return isOptional || count < this.#count ? { type: 'optional', inner } : inner
  }

  convert(object: SourceObject): ValueObject {
    return new Map([...object].map(([key, value]) => [key, this.convertField(key, value)]))
  }

  convertField(key: string, value: SourceValue): Value {
    return (this.#values ?? this.#fields.get(key)!.shape).convert(value)
  }
}

function plainType(value: Value): PlainType {
  switch (typeof value) {
    case 'boolean':
      return 'boolean'
    case 'bigint':
      return 'int64'
    case 'number':
      return 'float64'
    default:
      if (value === null) return 'null'
      return value instanceof Timestamp ? 'timestamp' : 'bytes'
  }
}
