/**
 * How a message is described: arktype, closed everywhere, and failures that say where and what is
 * expected but never what was received (its own messages echo the value).
 */
import './arktype-config.ts'
import { type Type, type } from 'arktype'
import type { TableCode } from '../errors/codes.ts'
import { Fault, type Violation } from '../errors/fault.ts'

/**
 * Declares a message: `message({ code: 'string', 'deviceName?': 'string' })`. No object in it is a
 * list: arktype itself takes `[]` for an object whose fields may all be absent.
 */
export const message: typeof type = new Proxy(type, {
  apply: (declare, _, [definition, ...rest]: unknown[]) =>
    Reflect.apply(declare, undefined, [withoutLists(definition), ...rest]),
})

function withoutLists(definition: unknown): unknown {
  if (definition?.constructor !== Object) return definition
  const fields = Object.entries(definition).map(([name, each]) => [name, withoutLists(each)])
  const declared = type.raw(Object.fromEntries(fields))
  if (!declared.allows([])) return declared
  // Before fields that are read from a text come to be something else.
  return declared.filter((data, context) => !Array.isArray(data) || context.mustBe('an object'))
}

/** What a route or a client needs of a schema. */
export interface Schema<T> {
  readonly infer: T
  (data: unknown): unknown
}

/** Draft 2020-12. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/**
 * What a schema takes from a caller, as far as JSON Schema can say it: a rule that it cannot is
 * left to the description. What comes as text in a URL is described as what it means.
 */
export function jsonSchemaOf(schema: Schema<unknown>): JsonSchema {
  return (schema as unknown as Type).toJsonSchema({
    dialect: null,
    fallback: {
      predicate: ({ base }) => base,
      morph: ({ base, out }) => out ?? base,
      patternIntersection: ({ base, pattern }) => ({ ...base, allOf: [{ pattern }] }),
    },
  }) as JsonSchema
}

const VIOLATIONS_MAX = 16

/** Throws a Fault with `code` and the violations, whose paths begin with `at`. */
export function read<T>(schema: Schema<T>, data: unknown, code: TableCode, at?: string): T {
  const result = schema(data)
  if (!(result instanceof type.errors)) return result as T
  const violations: Violation[] = result.slice(0, VIOLATIONS_MAX).map(({ path, expected }) => {
    const unknown = expected === 'removed'
    // The name of an unknown field is the caller's text: it may be a secret in the wrong place.
    const known = path.stringifyAncestors().at(unknown ? -2 : -1)
    const whole = [at, known].filter(Boolean).join('.')
    return { path: whole || '$', rule: unknown ? 'no unknown field' : ruleOf(expected) }
  })
  throw new Fault(code, { violations, detail: 'schema' })
}

/** A union's expectation quotes what it received behind "(was"; nothing from there on is kept. */
function ruleOf(expected: string): string {
  const quoted = expected.indexOf(' (was ')
  return quoted === -1 ? expected : expected.slice(0, quoted)
}
