/**
 * Decides from two schemas alone whether every document that fits one fits the other. It errs on
 * the safe side only: if it finds no reason, the schema rejects no such document.
 */
import { sha256 } from '../../system/digests.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { matches } from '../../value/patterns/matcher.ts'
import type { FieldsJson, LiteralJson, ValidatorJson } from '../../value/validators.ts'
import { codePoints } from '../../value/validators.ts'

/**
 * Maximum steps of one comparison. A step blocks the event loop for about 100 ns. Without this
 * bound a publisher, who chooses all of the schemas, could block the server: unions inside unions
 * multiply the steps, and a request names up to 240 pairs of Releases.
 */
export const STEPS_MAX = 2_000_000
/** Characters of a literal that cost one step when they are compared or counted. */
const STEP_CHARACTERS = 64
/** Steps of one character that a pattern reads, which takes up to 25 us. */
const PATTERN_CHARACTER_STEPS = 100
/** Steps of compiling the automaton of a pattern. */
const PATTERN_STEPS = 5_000
const TOO_COMPLEX = 'too complex to compare'

type Tables = ReadonlyMap<string, TableManifest>
type ValidatorOf<T extends ValidatorJson['type']> = Extract<ValidatorJson, { type: T }>

/** Returns the tables that `next` lacks: their documents could no longer be read. */
export function removedTables(next: Tables, previous: Tables): string[] {
  return [...previous.keys()].filter((name) => !next.has(name))
}

/**
 * The comparisons of one request, which share STEPS_MAX; tables that are left when the steps are
 * spent count as incompatible. Each private method that returns `string | null` returns null if
 * `next` accepts every value that `previous` accepted, else the reason why it may not.
 */
export class SchemaComparison {
  #steps = 0
  readonly #digests = new Map<TableManifest, string>()
  readonly #patterns = new Map<string, (text: string) => boolean>()
  /** The member of each union from which the next search starts. */
  readonly #searchFrom = new Map<ValidatorJson, number>()

  get steps(): number {
    return this.#steps
  }

  /**
   * Returns `path: reason` for each table of both schemas that may hold documents which `next`
   * rejects; the first reason of each.
   */
  rejectedDocuments(next: Tables, previous: Tables): string[] {
    const rejected: string[] = []
    for (const [name, table] of previous) {
      const later = next.get(name)
      if (later === undefined || this.#isSame(later, table)) continue
      const reason = this.#fields(later.fields, table.fields, name)
      if (this.#isSpent) return [...rejected, `${name}: ${TOO_COMPLEX}`]
      if (reason !== null) rejected.push(reason)
    }
    return rejected
  }

  /**
   * Returns the first reason why code of `one` may not write beside code of `other`, else null:
   * `one` rejects documents of `other`, or does not check one of its unique indexes. Tables that
   * only one of them has never conflict.
   */
  conflict(one: Tables, other: Tables): string | null {
    const [rejected] = this.rejectedDocuments(one, other)
    if (rejected !== undefined) return rejected
    for (const [name, table] of other) {
      const own = one.get(name)
      if (own === undefined || this.#isSame(own, table)) continue
      const unchecked = this.#uncheckedIndex(own, table)
      if (this.#isSpent) return `${name}: ${TOO_COMPLEX}`
      if (unchecked !== null) return `${name}.${unchecked}: the unique index is missing`
    }
    return null
  }

  /** Returns the tables of `next` in which code of `previous` may have stored what it rejects. */
  uncertainTables(next: Tables, previous: Tables): string[] {
    return [...next].flatMap(([name, table]) => {
      const earlier = previous.get(name)
      if (earlier === undefined) return name
      if (this.#isSame(table, earlier)) return []
      const reason =
        this.#fields(table.fields, earlier.fields, name) ?? this.#uncheckedIndex(earlier, table)
      return reason === null && !this.#isSpent ? [] : name
    })
  }

  get #isSpent(): boolean {
    return this.#steps > STEPS_MAX
  }

  #spend(steps: number): boolean {
    this.#steps += steps
    return !this.#isSpent
  }

  /** Compares digests: most tables of two Releases are equal, and native code hashes each once. */
  #isSame(one: TableManifest, other: TableManifest): boolean {
    return this.#digestOf(one) === this.#digestOf(other)
  }

  #digestOf(table: TableManifest): string {
    let digest = this.#digests.get(table)
    if (digest === undefined) {
      digest = sha256(JSON.stringify(table)).toString('latin1')
      this.#digests.set(table, digest)
    }
    return digest
  }

  #uncheckedIndex(own: TableManifest, other: TableManifest): string | null {
    const checked = new Set<string>()
    for (const { fields, unique } of own.indexes) {
      if (!this.#spend(fields.length)) return TOO_COMPLEX
      if (unique) checked.add(fields.join())
    }
    for (const { name, fields, unique } of other.indexes) {
      if (!this.#spend(fields.length)) return TOO_COMPLEX
      if (unique && !checked.has(fields.join())) return name
    }
    return null
  }

  #fields(next: FieldsJson, previous: FieldsJson, path: string): string | null {
    const earlier = Object.entries(previous)
    if (!this.#spend(earlier.length)) return TOO_COMPLEX
    for (const [name, field] of earlier) {
      const fieldPath = `${path}.${name}`
      const later = Object.hasOwn(next, name) ? next[name] : undefined
      if (later === undefined) return `${fieldPath}: the field was removed`
      if (field.type === 'optional' && later.type !== 'optional') {
        return `${fieldPath}: the field was optional and is required`
      }
      const reason = this.#validators(required(later), required(field), fieldPath)
      if (reason !== null) return reason
    }
    const present = Object.entries(next)
    if (!this.#spend(present.length)) return TOO_COMPLEX
    for (const [name, field] of present) {
      if (field.type !== 'optional' && !Object.hasOwn(previous, name)) {
        return `${path}.${name}: a new field must be optional`
      }
    }
    return null
  }

  #validators(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
    if (!this.#spend(1)) return TOO_COMPLEX
    if (next.type === 'any') return null
    if (previous.type === 'union') {
      return firstReason(previous.members, (member) => this.#validators(next, member, path))
    }
    if (previous.type === 'nullable') {
      const parts: readonly ValidatorJson[] = [{ type: 'null' }, previous.inner]
      return firstReason(parts, (part) => this.#validators(next, part, path))
    }
    if (next.type === 'union') return this.#union(next, previous, path)
    if (next.type === 'nullable') {
      return previous.type === 'null' ? null : this.#validators(next.inner, previous, path)
    }
    if (previous.type === 'literal') {
      const isAccepted = this.#acceptsLiteral(next, previous.value)
      return isAccepted ? null : `${path}: an earlier literal is rejected`
    }
    return this.#sameType(next, previous, path)
  }

  /** Members mostly keep their order, so each search starts behind the member found last. */
  #union(next: ValidatorOf<'union'>, previous: ValidatorJson, path: string): string | null {
    const { members } = next
    const from = this.#searchFrom.get(next) ?? 0
    for (let i = 0; i < members.length; i++) {
      const member = (from + i) % members.length
      if (this.#validators(members[member]!, previous, path) !== null) continue
      this.#searchFrom.set(next, member + 1)
      return null
    }
    return `${path}: no member of the union accepts every earlier value`
  }

  #sameType(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
    if (next.type !== previous.type) return `${path}: was ${previous.type} and is ${next.type}`
    switch (next.type) {
      case 'array': {
        const earlier = previous as ValidatorOf<'array'>
        return (
          within(next.maximumItems, earlier.maximumItems, path) ??
          this.#validators(next.items, earlier.items, `${path}[]`)
        )
      }
      case 'record': {
        const earlier = previous as ValidatorOf<'record'>
        return (
          within(next.maximumItems, earlier.maximumItems, path) ??
          this.#validators(next.values, earlier.values, `${path}.*`)
        )
      }
      case 'object':
        return this.#fields(next.fields, (previous as ValidatorOf<'object'>).fields, path)
      case 'id':
        return next.table === (previous as ValidatorOf<'id'>).table
          ? null
          : `${path}: names another table`
      default:
        return scalars(next, previous, path)
    }
  }

  /** An ID and a timestamp are values of their own, equal to no string and no integer. */
  #acceptsLiteral(next: ValidatorJson, literal: LiteralJson): boolean {
    switch (next.type) {
      case 'literal':
        return this.#isSameLiteral(next.value, literal)
      case 'boolean':
        return 'boolean' in literal
      case 'int64':
        return 'int64' in literal && isWithin(next, BigInt(literal.int64))
      case 'string':
        return 'string' in literal && this.#acceptsText(next, literal.string)
      default:
        return false
    }
  }

  #isSameLiteral(one: LiteralJson, other: LiteralJson): boolean {
    if ('string' in one) {
      if (!('string' in other) || one.string.length !== other.string.length) return false
      return this.#spend(one.string.length / STEP_CHARACTERS) && one.string === other.string
    }
    if ('boolean' in one) return 'boolean' in other && one.boolean === other.boolean
    return 'int64' in other && one.int64 === other.int64
  }

  #acceptsText(
    { minimumLength, maximumLength, pattern }: ValidatorOf<'string'>,
    text: string,
  ): boolean {
    if (!this.#spend(text.length / STEP_CHARACTERS)) return false
    const length = codePoints(text, text.length)
    if (length < (minimumLength ?? 0) || length > (maximumLength ?? length)) return false
    return pattern === undefined || this.#matches(pattern, text)
  }

  #matches(pattern: string, text: string): boolean {
    let check = this.#patterns.get(pattern)
    if (check === undefined) {
      if (!this.#spend(PATTERN_STEPS)) return false
      check = matches(pattern)
      this.#patterns.set(pattern, check)
    }
    return this.#spend(text.length * PATTERN_CHARACTER_STEPS) && check(text)
  }
}

function isWithin({ minimum, maximum }: ValidatorOf<'int64'>, value: bigint): boolean {
  return (
    (minimum === undefined || value >= BigInt(minimum)) &&
    (maximum === undefined || value <= BigInt(maximum))
  )
}

function scalars(next: ValidatorJson, previous: ValidatorJson, path: string): string | null {
  switch (next.type) {
    case 'int64': {
      const earlier = previous as ValidatorOf<'int64'>
      const big = (text: string | undefined) => (text === undefined ? undefined : BigInt(text))
      return (
        within(big(next.maximum), big(earlier.maximum), path) ??
        atLeast(big(next.minimum), big(earlier.minimum), path)
      )
    }
    case 'float64': {
      const earlier = previous as ValidatorOf<'float64'>
      return (
        within(next.maximum, earlier.maximum, path) ?? atLeast(next.minimum, earlier.minimum, path)
      )
    }
    case 'string': {
      const earlier = previous as ValidatorOf<'string'>
      return (
        within(next.maximumLength, earlier.maximumLength, path) ??
        atLeast(next.minimumLength ?? 0, earlier.minimumLength ?? 0, path) ??
        samePattern(next.pattern, earlier.pattern, path)
      )
    }
    case 'bytes':
      return within(next.maximumLength, (previous as ValidatorOf<'bytes'>).maximumLength, path)
    default:
      return null
  }
}

function required(field: FieldsJson[string]): ValidatorJson {
  return field.type === 'optional' ? field.inner : field
}

function firstReason<T>(items: readonly T[], reason: (item: T) => string | null): string | null {
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

/** Compares the texts: whether one pattern includes another can take exponential time to decide. */
function samePattern(
  next: string | undefined,
  previous: string | undefined,
  path: string,
): string | null {
  return next === undefined || next === previous ? null : `${path}: the pattern is another`
}
