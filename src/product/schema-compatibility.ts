/**
 * Whether every document that fits one schema fits another, decided without looking at documents.
 * The answer errs on one side only: where a schema passes, no stored document is refused by it.
 */

import { Malformed } from '../value/malformed.ts'
import type { TableManifest } from '../value/manifest.ts'
import type { FieldsJson, LiteralJson, ValidatorJson } from '../value/validators.ts'
import { compileValidator } from '../value/validators.ts'
import type { Value } from '../value/values.ts'

/** Pairs of validators looked at; unions inside unions multiply, and a publisher chooses both. */
const STEPS_MAX = 200_000

type Tables = ReadonlyMap<string, TableManifest>
type Of<T extends ValidatorJson['type']> = Extract<ValidatorJson, { type: T }>

/** Names of tables that `next` does not have any more. Their documents would be out of reach. */
export function removedTables(next: Tables, previous: Tables): string[] {
  return [...previous.keys()].filter((name) => !next.has(name))
}

/** For each table of both that may hold documents `next` refuses: `path: reason`, the first one. */
export function refusedDocuments(next: Tables, previous: Tables): string[] {
  const refused: string[] = []
  for (const [name, table] of previous) {
    const later = next.get(name)
    if (later === undefined) continue
    const reason = new Comparison().fields(later.fields, table.fields, name)
    if (reason !== null) refused.push(reason)
  }
  return refused
}

/**
 * Why code of one schema may not write beside code of another: documents of the other that it
 * refuses, and unique indexes of the other that it does not check. Tables of one alone are fine.
 */
export function conflicts(one: Tables, other: Tables): string[] {
  const unchecked: string[] = []
  for (const [name, { indexes }] of other) {
    const own = one.get(name)?.indexes
    if (own === undefined) continue
    const checked = new Set(own.filter(({ unique }) => unique).map(({ fields }) => fields.join()))
    for (const { name: index, fields, unique } of indexes) {
      if (unique && !checked.has(fields.join())) {
        unchecked.push(`${name}.${index}: the unique index is missing`)
      }
    }
  }
  return [...refusedDocuments(one, other), ...unchecked]
}

/** Each method answers null where `next` takes all that `previous` took, else `path: reason`. */
class Comparison {
  #steps = 0

  fields(next: FieldsJson, previous: FieldsJson, path: string): string | null {
    for (const [name, field] of Object.entries(previous)) {
      const at = `${path}.${name}`
      const later = Object.hasOwn(next, name) ? next[name] : undefined
      if (later === undefined) return `${at}: the field was removed`
      if (field.type === 'optional' && later.type !== 'optional') {
        return `${at}: the field was optional and is required`
      }
      const reason = this.validators(required(later), required(field), at)
      if (reason !== null) return reason
    }
    for (const [name, field] of Object.entries(next)) {
      if (field.type !== 'optional' && !Object.hasOwn(previous, name)) {
        return `${path}.${name}: a new field must be optional`
      }
    }
    return null
  }

  validators(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
    if (++this.#steps > STEPS_MAX) return `${path}: too complex to compare`
    if (next.type === 'any') return null
    if (previous.type === 'union') {
      return first(previous.members, (member) => this.validators(next, member, path))
    }
    if (previous.type === 'nullable') {
      const parts: readonly ValidatorJson[] = [{ type: 'null' }, previous.inner]
      return first(parts, (part) => this.validators(next, part, path))
    }
    if (next.type === 'union') {
      const taken = next.members.some((member) => this.validators(member, previous, path) === null)
      return taken ? null : `${path}: no member of the union takes every earlier value`
    }
    if (next.type === 'nullable') {
      return previous.type === 'null' ? null : this.validators(next.inner, previous, path)
    }
    if (previous.type === 'literal') return takesLiteral(next, previous.value, path)
    return this.#alike(next, previous, path)
  }

  #alike(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
    if (next.type !== previous.type) return `${path}: was ${previous.type} and is ${next.type}`
    switch (next.type) {
      case 'array': {
        const earlier = previous as Of<'array'>
        return (
          within(next.maximumItems, earlier.maximumItems, path) ??
          this.validators(next.items, earlier.items, `${path}[]`)
        )
      }
      case 'record': {
        const earlier = previous as Of<'record'>
        return (
          within(next.maximumItems, earlier.maximumItems, path) ??
          this.validators(next.values, earlier.values, `${path}.*`)
        )
      }
      case 'object':
        return this.fields(next.fields, (previous as Of<'object'>).fields, path)
      case 'id':
        return next.table === (previous as Of<'id'>).table ? null : `${path}: names another table`
      default:
        return scalars(next, previous, path)
    }
  }
}

function scalars(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
  switch (next.type) {
    case 'int64': {
      const earlier = previous as Of<'int64'>
      const big = (text: string | undefined) => (text === undefined ? undefined : BigInt(text))
      return (
        within(big(next.maximum), big(earlier.maximum), path) ??
        atLeast(big(next.minimum), big(earlier.minimum), path)
      )
    }
    case 'float64': {
      const earlier = previous as Of<'float64'>
      return (
        within(next.maximum, earlier.maximum, path) ?? atLeast(next.minimum, earlier.minimum, path)
      )
    }
    case 'string': {
      const earlier = previous as Of<'string'>
      return (
        within(next.maximumLength, earlier.maximumLength, path) ??
        atLeast(next.minimumLength ?? 0, earlier.minimumLength ?? 0, path) ??
        samePattern(next.pattern, earlier.pattern, path)
      )
    }
    case 'bytes':
      return within(next.maximumLength, (previous as Of<'bytes'>).maximumLength, path)
    default:
      return null
  }
}

function required(field: FieldsJson[string]): ValidatorJson {
  return field.type === 'optional' ? field.inner : field
}

function first<T>(items: readonly T[], reason: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = reason(item)
    if (found !== null) return found
  }
  return null
}

function within<T extends number | bigint>(
  next: T | undefined,
  previous: T | undefined,
  path: string,
): string | null {
  const kept = next === undefined || (previous !== undefined && previous <= next)
  return kept ? null : `${path}: the upper bound is lower`
}

function atLeast<T extends number | bigint>(
  next: T | undefined,
  previous: T | undefined,
  path: string,
): string | null {
  const kept = next === undefined || (previous !== undefined && previous >= next)
  return kept ? null : `${path}: the lower bound is higher`
}

/** Whether one pattern takes all that another does is not asked: it can take exponential time. */
function samePattern(
  next: string | undefined,
  previous: string | undefined,
  path: string,
): string | null {
  return next === undefined || next === previous ? null : `${path}: the pattern is another`
}

function takesLiteral(next: ValidatorJson, literal: LiteralJson, path: string): string | null {
  const value: Value =
    'string' in literal
      ? literal.string
      : 'boolean' in literal
        ? literal.boolean
        : BigInt(literal.int64)
  try {
    compileValidator(next, { coerce: false })(value, path)
    return null
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return `${path}: an earlier literal is refused`
  }
}
