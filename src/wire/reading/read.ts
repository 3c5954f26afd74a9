/**
 * Reads data with schemas. Errors contain the location and the expectation, never the received
 * value. Messages of arktype contain values and unknown fields, so they are not used.
 */
import type { ArkError, Type } from 'arktype'
import type { TableCode } from '../../errors/codes.ts'
import { Fault, type Violation } from '../../errors/fault.ts'
import { isJsonObject } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { NO_LIST } from '../rules.ts'
import { type Check, isSchema, openSchema, type Schema } from '../schema.ts'
import { ArkErrors, compiled, typeFrom } from './arktype.ts'

const VIOLATIONS_MAX = 16

const types = new WeakMap<Schema<unknown>, Type>()

/** Throws a Fault with `code` and all violations, whose paths begin with `at`. */
export function read<T>(schema: Schema<T>, data: unknown, code: TableCode, at?: string): T {
  const result = apply(schema, data)
  if (!(result instanceof ArkErrors)) return result
  throw new Fault(code, { violations: violationsOf(result, data, { at }), detail: 'schema' })
}

/** Throws the error that `failure` creates from the first violation. */
export function readOr<T>(
  schema: Schema<T>,
  data: unknown,
  failure: (violation: Violation) => Error,
): T {
  const result = apply(schema, data)
  if (!(result instanceof ArkErrors)) return result
  throw failure(violationsOf(result, data)[0])
}

/** Reads trusted data. Throws a ValidationError whose path may name an unknown field. */
export function parse<T>(schema: Schema<T>, data: unknown): T {
  const result = apply(schema, data)
  if (!(result instanceof ArkErrors)) return result
  const [{ path, rule }] = violationsOf(result, data, { at: '$', namesUnknown: true })
  throw new ValidationError(rule, path)
}

/** Creates the type of a schema before its first use. */
export function prepare(schema: Schema<unknown>): void {
  compiledType(schema)
}

/** Returns whether data matches. Only for schemas that do not convert data. */
export function fits<T>(schema: Schema<T>, data: unknown): data is T {
  return !(apply(schema, data) instanceof ArkErrors)
}

function apply<T>(schema: Schema<T>, data: unknown): T | ArkErrors {
  const { keepsData, allows, apply } = schema.check ?? firstCheck(schema, data)
  return keepsData && allows(data) ? (data as T) : (apply(data) as T | ArkErrors)
}

/**
 * Compiles a schema on its second use, since a command uses most schemas once. Invalid data
 * compiles it on first use: only compiled code reports errors of the right branch of a union.
 */
function firstCheck(schema: Schema<unknown>, data: unknown): Check {
  if (!schema.isUsed) {
    schema.isUsed = true
    const check = checkOf(compiledType(schema))
    if (check.keepsData && check.allows(data)) return check
  }
  schema.check = checkOf(compiled(compiledType(schema)))
  return schema.check
}

function checkOf(type: Type): Check {
  return { keepsData: type.in === type, allows: type.allows, apply: (data) => type(data) }
}

/** Returns the arktype type of a schema, created on first use. */
export function compiledType(schema: Schema<unknown>): Type {
  const known = types.get(schema)
  if (known !== undefined) return known
  const made = typeFrom(resolve(schema.definition, schema), schema)
  types.set(schema, made)
  return made
}

/** Replaces schemas by their types, and excludes lists from every object. */
function resolve(definition: unknown, schema: Schema<unknown>): unknown {
  if (isSchema(definition)) return compiledType(schema.isOpen ? openSchema(definition) : definition)
  if (Array.isArray(definition)) {
    const [base, operator, ...operands] = definition
    return operator === '@'
      ? [resolve(base, schema), operator, ...operands]
      : [resolve(base, schema), operator, ...operands.map((each) => resolve(each, schema))]
  }
  if (definition?.constructor !== Object) return definition
  const fields = Object.entries(definition).map(([name, field]) => [name, resolve(field, schema)])
  const object = typeFrom(Object.fromEntries(fields), schema)
  return object.allows([]) ? object.filter(NO_LIST) : object
}

interface ReadOptions {
  /** Prefix of the paths in errors. */
  readonly at?: string | undefined
  /** Makes errors name unknown fields. A caller's names may be secrets in the wrong place. */
  readonly namesUnknown?: boolean
}

function violationsOf(
  errors: ArkErrors,
  data: unknown,
  { at, namesUnknown = false }: ReadOptions = {},
): [Violation, ...Violation[]] {
  const rules = new Map<string, string>()
  for (const error of errors) {
    const { path, rule } = locate(error, data, namesUnknown)
    const place = formatPath(path, at)
    if (!rules.has(place)) rules.set(place, rule)
    if (rules.size === VIOLATIONS_MAX) break
  }
  return Array.from(rules, ([path, rule]) => ({ path, rule })) as [Violation, ...Violation[]]
}

interface LocatedRule {
  readonly path: readonly PropertyKey[]
  readonly rule: string
}

function locate(error: ArkError, data: unknown, namesUnknown: boolean): LocatedRule {
  const path = [...error.path]
  // arktype names a field even of data that is not an object, such as `kind` of a union.
  let part: unknown = data
  for (const [depth, key] of path.entries()) {
    const fits = typeof key === 'number' ? Array.isArray(part) : isJsonObject(part)
    if (!fits) return { path: path.slice(0, depth), rule: NO_LIST.expected }
    part = (part as Readonly<Record<PropertyKey, unknown>>)[key]
  }
  // arktype describes a union by the paths of its branches, and fails for some names of fields.
  if (!error.hasCode('union') && error.expected === 'removed') {
    return { path: namesUnknown ? path : path.slice(0, -1), rule: 'no unknown field' }
  }
  return { path, rule: ruleOf(error) }
}

/** Returns what is expected; arktype's text of several errors names what was received. */
function ruleOf(error: ArkError): string {
  // Only the first rule: data that is not a list may break rules of lists as well.
  if (error.hasCode('intersection')) return ruleOf(error.errors[0]!)
  if (error.hasCode('union')) return [...new Set(error.errors.map(ruleOf))].join(' or ')
  return error.expected
}

/** Formats a path such as `grants[0].scope.kind`; `$` is the root. */
function formatPath(path: readonly PropertyKey[], at = ''): string {
  const parts = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
  return (at + parts.join('')).replace(/^\./, '') || '$'
}
