/** Replaces the fields of documents that a redaction names. */
import { assert } from '../../errors/assert.ts'
import type { ValidatorJson } from '../../value/validators.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../../value/values.ts'
import { type Declaration, EVERY_ENTRY, entryOf, itemOf, partOf } from './declarations.ts'
import { FakeValues } from './fake-values.ts'
import type { KeyedValues } from './keyed-values.ts'
import { redactionFault } from './redaction-file.ts'
import { HASH_CHARACTERS, type RedactionPlan, type Step } from './redaction-plan.ts'

type FieldsStep = Extract<Step, { readonly kind: 'fields' }>
type Replacement = Extract<Step, { readonly kind: 'hash' | 'fake' }>['kind']

export class Redactor {
  readonly #plan: RedactionPlan
  readonly #keyed: KeyedValues
  readonly #fakes: FakeValues

  constructor(plan: RedactionPlan, keyed: KeyedValues) {
    this.#plan = plan
    this.#keyed = keyed
    this.#fakes = new FakeValues(keyed)
  }

  /**
   * Returns the fields of a document with other values; the object itself where none is named.
   * Throws REDACTION_INVALID where a value has not the fields that the redaction names.
   */
  redact(table: string, fields: ValueObject): ValueObject {
    const step = this.#plan.get(table)
    return step === undefined ? fields : this.#fields(step, fields, table)
  }

  #fields({ fields }: FieldsStep, whole: ValueObject, path: string): ValueObject {
    const redacted = new Map<string, Value>()
    const every = fields.get(EVERY_ENTRY)
    for (const [name, value] of whole) {
      const step = fields.get(name) ?? every
      // The name of an entry of a record is a value.
      const at = `${path}.${fields.has(name) ? name : EVERY_ENTRY}`
      const kept = step === undefined ? value : this.#step(step, value, at)
      if (kept !== undefined) redacted.set(name, kept)
    }
    return redacted
  }

  /** Returns undefined for a value that is left out. */
  #step(step: Step, value: Value, path: string): Value | undefined {
    switch (step.kind) {
      case 'absent':
        return undefined
      case 'null':
        return null
      case 'fields':
        return this.#inside(step, value, path)
      default:
        return this.#replaced(step.kind, value, step.declaration)
    }
  }

  #inside(step: FieldsStep, value: Value, path: string): Value {
    if (value === null) return null
    if (Array.isArray(value)) {
      return value.map((item: Value) => this.#inside(step, item, path))
    }
    if (value instanceof Map) return this.#fields(step, value, path)
    // To keep it would let through what the author of the file wanted to replace.
    throw redactionFault(`${path}: a document has no object there, but the file names fields of it`)
  }

  #replaced(kind: Replacement, value: Value, declaration: Declaration): Value {
    if (value === null || value instanceof TypedId) return value
    if (Array.isArray(value)) {
      const item = itemOf(declaration)
      return value.map((each: Value) => this.#replaced(kind, each, item))
    }
    if (value instanceof Map) return this.#entries(kind, value, declaration)
    if (isLiteral(value, declaration)) return value
    return this.#leaf(kind, value, declaration)
  }

  /** Names that neither the schema nor the fields of the table have are values as well. */
  #entries(kind: Replacement, whole: ValueObject, declaration: Declaration): ValueObject {
    const replaced = new Map<string, Value>()
    for (const [name, value] of whole) {
      const part = declaresName(declaration, name) ? partOf(declaration, name) : null
      if (part !== null) replaced.set(name, this.#replaced(kind, value, part))
      else replaced.set(this.#name(kind, name), this.#replaced(kind, value, entryOf(declaration)))
    }
    return replaced
  }

  #name(kind: Replacement, name: string): string {
    return kind === 'hash' ? this.#hash(name) : this.#fakes.text(name)
  }

  #leaf(kind: Replacement, value: Value, { validators }: Declaration): Value {
    switch (typeof value) {
      case 'string':
        return kind === 'hash' ? this.#hash(value) : this.#fakes.text(value)
      case 'bigint':
        return this.#fakes.integer(value, integerBounds(validators))
      case 'number':
        return this.#fakes.float(value, floatBounds(validators))
      case 'boolean':
        // Both values are too few for one that tells nothing and keeps equal values equal.
        return false
      default:
        if (value instanceof Timestamp) return this.#fakes.timestamp(value)
        assert(value instanceof Uint8Array, 'every other kind was replaced')
        return kind === 'hash' ? this.#keyed.digest('hash-bytes', value) : this.#fakes.bytes(value)
    }
  }

  #hash(text: string): string {
    return this.#keyed.digest('hash', text).toString('hex').slice(0, HASH_CHARACTERS)
  }
}

function declaresName({ validators, shape }: Declaration, name: string): boolean {
  const isStored = typeof shape === 'object' && shape !== null && Object.hasOwn(shape, name)
  if (isStored) return true
  return validators.some(
    (validator) => validator.type === 'object' && Object.hasOwn(validator.fields, name),
  )
}

/** Returns whether the schema lists the value: then it is not of a person. */
function isLiteral(value: Value, { validators }: Declaration): boolean {
  return validators.some((validator) => {
    if (validator.type !== 'literal') return false
    const [literal] = Object.values(validator.value)
    return typeof value === 'bigint' ? literal === String(value) : literal === value
  })
}

function integerBounds(validators: readonly ValidatorJson[]) {
  const found = validators.find(({ type }) => type === 'int64')
  const { minimum, maximum } = found?.type === 'int64' ? found : {}
  return {
    minimum: minimum === undefined ? null : BigInt(minimum),
    maximum: maximum === undefined ? null : BigInt(maximum),
  }
}

function floatBounds(validators: readonly ValidatorJson[]) {
  const found = validators.find(({ type }) => type === 'float64')
  const { minimum = null, maximum = null } = found?.type === 'float64' ? found : {}
  return { minimum, maximum }
}
