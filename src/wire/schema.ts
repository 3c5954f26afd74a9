/**
 * How a message is described: zod, every object closed (`z.strictObject`), and failures that say
 * where and what is expected but never what was received (its own messages name unknown fields).
 */
import * as z from 'zod'
import type { TableCode } from '../errors/codes.ts'
import { Fault, type Violation } from '../errors/fault.ts'

/** What a route or a client needs of a schema. */
export type Schema<T> = z.ZodType<T>
/** What is read with a schema. */
export type Infer<S extends Schema<unknown>> = z.output<S>

export const NO_FIELDS = z.strictObject({})

export function isSchema(value: unknown): value is Schema<unknown> {
  return value instanceof z.ZodType
}

/**
 * The same schema for what comes with every call: read in 30 to 80 ns where it takes 200 to 500,
 * after 2 ms to make its code. What is refused is read again the other way.
 */
export function compiled<T>(schema: Schema<T>): Schema<T> {
  return z.compile(schema)
}

/**
 * The same schema with keywords for the document: rules that a caller has to know and that are
 * checked elsewhere, between fields or off the path of every call. It reads what it read before.
 */
export function documented<S extends z.ZodType>(schema: S, keywords: JsonSchema): S {
  return schema.meta(keywords) as S
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
  const { $schema, ...described } = z.toJSONSchema(schema, { io: 'output' })
  return described
}

const VIOLATIONS_MAX = 16

/** Throws a Fault with `code` and a violation for each place, whose paths begin with `at`. */
export function read<T>(schema: Schema<T>, data: unknown, code: TableCode, at?: string): T {
  const result = schema.safeParse(data, OPTIONS)
  if (result.success) return result.data
  const rules = new Map<string, string>()
  for (const { path, message } of result.error.issues) {
    const place = placeOf(path, at)
    // The first rule says it all: what is no list has too many characters for one too.
    if (!rules.has(place)) rules.set(place, message)
    if (rules.size === VIOLATIONS_MAX) break
  }
  const violations = Array.from(rules, ([path, rule]): Violation => ({ path, rule }))
  throw new Fault(code, { violations, detail: 'schema' })
}

/** `grants[0].scope.kind`; `$` for the whole. */
function placeOf(path: readonly PropertyKey[], at = ''): string {
  const parts = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
  return (at + parts.join('')).replace(/^\./, '') || '$'
}

/** The description of a schema is its rule; of others the table has one. */
const OPTIONS = {
  error(issue: z.core.$ZodRawIssue): string {
    const { schema } = issue
    const described = schema === undefined ? undefined : z.globalRegistry.get(schema)?.description
    return described ?? RULES[issue.code as keyof typeof RULES]?.(issue as never) ?? 'a valid value'
  },
}

const RULES: { readonly [C in z.core.$ZodIssueCode]?: (issue: IssueOf<C>) => string } = {
  invalid_type: ({ expected }) => TYPES[expected] ?? expected,
  invalid_value: ({ values }) => oneOf(values),
  // The name of an unknown field is the caller's text: it may be a secret in the wrong place.
  unrecognized_keys: () => 'no unknown field',
  too_small: ({ minimum, origin, inclusive }) =>
    `${inclusive ? 'at least' : 'more than'} ${minimum}${UNITS[origin] ?? ''}`,
  too_big: ({ maximum, origin, inclusive }) =>
    `${inclusive ? 'at most' : 'less than'} ${maximum}${UNITS[origin] ?? ''}`,
  invalid_union: ({ errors, options }) =>
    options === undefined
      ? [...new Set(errors.map(([first]) => first!.message))].join(' or ')
      : oneOf(options),
}
type IssueOf<C> = Extract<z.core.$ZodIssue, { code: C }> & { options?: z.core.util.Primitive[] }

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  nonoptional: 'present',
}
const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' }

function oneOf(values: readonly z.core.util.Primitive[]): string {
  const texts = values.map((value) => JSON.stringify(value)).join(', ')
  return values.length === 1 ? texts : `one of ${texts}`
}
