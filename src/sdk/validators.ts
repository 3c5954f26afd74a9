/** The builders of `v`. Each makes one validator as plain data (value/validators.ts). */
import { FILES_TABLE } from '../value/files/files.ts'
import { HTTP_DELIVERY } from '../value/http/deliveries.ts'
import { HTTP_RESPONSE } from '../value/http/responses.ts'
import { isTableName } from '../value/ids.ts'
import { PatternError } from '../value/patterns/pattern-error.ts'
import { parsePattern } from '../value/patterns/syntax.ts'
import { acceptsUnknown, isOpen } from '../value/validator-json.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../value/validators.ts'
import { defaultJson } from './defaults.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'

const VALIDATOR = Symbol.for('svc.validator')

/** The result of `v.*()`. The types that authors see are in svc.d.ts. */
export interface ValidatorDefinition {
  readonly [VALIDATOR]: ValidatorJson | OptionalJson
  /** Throws, except on an optional field without a default. */
  default(value: unknown): ValidatorDefinition
}

function define(json: ValidatorJson): ValidatorDefinition {
  return Object.freeze({ [VALIDATOR]: json, default: rejectDefault })
}

function defineOptional(inner: ValidatorJson): ValidatorDefinition {
  return Object.freeze({
    [VALIDATOR]: { type: 'optional' as const, inner },
    default: (value: unknown) => {
      const json = { type: 'optional' as const, inner, default: defaultJson(inner, value) }
      return Object.freeze({ [VALIDATOR]: json, default: rejectSecondDefault })
    },
  })
}

function rejectDefault(): never {
  throw new DefinitionError(
    'A validator that is not optional has a default',
    'Write v.optional(...).default(...): only a field that can be left out has one',
  )
}

function rejectSecondDefault(): never {
  throw new DefinitionError('v.optional(...) has two defaults', 'Remove one of the two')
}

function contentOf(value: unknown): ValidatorJson | OptionalJson | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as Partial<ValidatorDefinition>)[VALIDATOR]
}

/** Returns the data of a validator that is not optional; `path` names it in messages. */
export function validatorJson(value: unknown, path: string): ValidatorJson {
  const json = contentOf(value)
  if (json === undefined) throw notValidator(value, path)
  if (json.type === 'optional') {
    throw new DefinitionError(
      `${path} is optional, but only a field of an object can be left out`,
      'Use v.nullable(...) for a value that may be null, or put v.optional(...) around the field',
    )
  }
  return json
}

/** Returns the data of `{ name: validator }`; `path` names it in messages. */
export function fieldsJson(value: unknown, path: string): FieldsJson {
  if (contentOf(value) !== undefined) {
    throw new DefinitionError(
      `${path} is a validator, but takes the fields themselves`,
      'Write { name: v.string() } without v.object around it',
    )
  }
  if (!isPlainObject(value)) {
    throw new DefinitionError(`${path} is ${kindOf(value)}`, 'Write fields: { name: v.string() }')
  }
  const fields: { [name: string]: ValidatorJson | OptionalJson } = {}
  for (const [name, field] of Object.entries(value)) {
    if (name === '__proto__') {
      throw new DefinitionError(`${path} has a field "__proto__"`, 'Give it another name')
    }
    const json = contentOf(field)
    fields[name] = json?.type === 'optional' ? json : validatorJson(field, `${path}.${name}`)
  }
  return fields
}

function notValidator(value: unknown, path: string): DefinitionError {
  const fix = () => {
    if (typeof value === 'function') return 'Call it, as in v.string()'
    if (isPlainObject(value)) return 'Write v.object({ ... }) around the fields'
    if (Array.isArray(value)) return 'Write v.array(...) for a list, v.union(...) for a choice'
    if (value === null) return 'Write v.null()'
    if (value === undefined) {
      return 'Check the spelling, and that the files of this Workspace do not import in a circle'
    }
    return 'Write v.literal(...) for a constant'
  }
  return new DefinitionError(`${path} is ${kindOf(value)}, not a validator`, fix())
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

type Options = { readonly [name: string]: unknown }

/** Reads the given bounds. The plain data does not contain undefined ones. */
function bounds(
  options: Options | undefined,
  names: readonly [string, ...string[]],
  owner: string,
  read: (value: unknown, path: string, name: string) => string | number,
) {
  const given: { [name: string]: string | number } = {}
  if (options === undefined) return given
  if (!isPlainObject(options)) {
    throw new DefinitionError(
      `${owner} takes its bounds as an object, not ${kindOf(options)}`,
      `Write { ${names[0]}: ... }`,
    )
  }
  rejectUnknownOptions(options, names, owner)
  for (const name of names) {
    if (options[name] !== undefined) given[name] = read(options[name], `${owner} ${name}`, name)
  }
  const [low, high] = [options[names[0]], options[names[1] ?? '']]
  if (low !== undefined && high !== undefined && (low as number) > (high as number)) {
    throw new DefinitionError(
      `${owner} has a ${names[0]} above its ${names[1]}, so that no value fits`,
      'Exchange the two bounds',
    )
  }
  return given
}

function int64Bound(value: unknown, path: string): string {
  if (typeof value !== 'bigint') {
    throw new DefinitionError(`${path} is ${kindOf(value)}`, 'Write a bigint, such as 0n')
  }
  return int64Text(value, path)
}

function int64Text(value: bigint, path: string): string {
  if (BigInt.asIntN(64, value) !== value) {
    throw new DefinitionError(
      `${path} does not fit in 64 bits`,
      'Stay within -(2n ** 63n) and 2n ** 63n - 1n',
    )
  }
  return String(value)
}

function float64Bound(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new DefinitionError(`${path} is not a finite number`, 'Write a number, such as 0.5')
  }
  // JSON has no negative zero.
  return value === 0 ? 0 : value
}

function count(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new DefinitionError(`${path} is not a count`, 'Write a whole number, such as 100')
  }
  return value
}

function stringBound(value: unknown, path: string, name: string): string | number {
  return name === 'pattern' ? patternText(value, path) : count(value, path)
}

/** Returns the source of a pattern. The flag `u` changes nothing: patterns count code points. */
function patternText(value: unknown, path: string): string {
  if (!(value instanceof RegExp)) {
    throw new DefinitionError(
      `${path} is ${kindOf(value)}, not a regular expression`,
      'Write one, such as /^[a-z0-9-]+$/',
    )
  }
  const flag = value.flags.replace('u', '')
  if (flag !== '') {
    throw new DefinitionError(
      `${path} has the flag "${flag}"`,
      flag.includes('i') ? 'Write both cases, such as [A-Za-z]' : 'Leave it out',
    )
  }
  try {
    parsePattern(value.source)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw new DefinitionError(`${path} has ${error.wrong}`, error.fix)
  }
  return value.source
}

function literal(value: unknown): ValidatorJson {
  switch (typeof value) {
    case 'boolean':
      return { type: 'literal', value: { boolean: value } }
    case 'bigint':
      return { type: 'literal', value: { int64: int64Text(value, 'v.literal(...)') } }
    case 'string':
      if (value.isWellFormed()) return { type: 'literal', value: { string: value } }
      throw new DefinitionError('v.literal(...) has half of a surrogate pair', 'Write whole text')
    default:
      throw new DefinitionError(
        `v.literal(...) is given ${kindOf(value)}`,
        value === null
          ? 'Write v.null()'
          : 'Write a string, a boolean, or a bigint such as v.literal(5n)',
      )
  }
}

function id(table: unknown): ValidatorJson {
  if (typeof table !== 'string' || !isTableName(table)) {
    throw new DefinitionError(
      `v.id(...) is given ${typeof table === 'string' ? `"${table}"` : kindOf(table)}`,
      'Write the name of a table of this schema, such as v.id("messages")',
    )
  }
  return { type: 'id', table }
}

function union(members: readonly unknown[]): ValidatorJson {
  if (members.length === 1 && Array.isArray(members[0])) {
    throw new DefinitionError('v.union(...) is given an array', 'Pass the members one by one')
  }
  if (members.length === 0) {
    throw new DefinitionError('v.union() has no members', 'Pass at least one validator')
  }
  return { type: 'union', members: members.map((member, i) => memberJson(member, i + 1)) }
}

function memberJson(member: unknown, position: number): ValidatorJson {
  const json = validatorJson(member, `v.union(...) member ${position}`)
  if (!isOpen(json)) return json
  throw new DefinitionError(
    `v.union(...) member ${position} is an open union`,
    'Write v.open(v.union(...)) around all of the members',
  )
}

function open(given: readonly unknown[]): ValidatorJson {
  if (given.length !== 1) {
    throw new DefinitionError(
      `v.open(...) is given ${given.length} arguments`,
      'Write v.open(v.union(...)) with one union',
    )
  }
  const inner = validatorJson(given[0], 'v.open(...)')
  if (inner.type !== 'union') {
    throw new DefinitionError(
      `v.open(...) is given v.${inner.type}(...)`,
      'Write v.open(v.union(...)): only a union can get members later',
    )
  }
  if (!acceptsUnknown(inner)) return { type: 'open', inner }
  throw new DefinitionError(
    'v.open(...) has a member that accepts { unknown: true }',
    'Narrow that member: the value stands for members that this Release does not know',
  )
}

/** Fields of the grants that `ctx.storage` makes. */
const DOWNLOAD_GRANT: FieldsJson = {
  path: { type: 'string' },
  token: { type: 'string' },
  expiresAt: { type: 'timestamp' },
}
const DOWNLOAD_URL: FieldsJson = {
  path: { type: 'string' },
  expiresAt: { type: 'timestamp' },
}
const UPLOAD_GRANT: FieldsJson = {
  ...DOWNLOAD_GRANT,
  uploadId: { type: 'string' },
  maximumBytes: { type: 'float64' },
}

const BUILDERS = Object.freeze({
  null: () => define({ type: 'null' }),
  boolean: () => define({ type: 'boolean' }),
  int64: (options?: Options) =>
    define({ type: 'int64', ...bounds(options, ['minimum', 'maximum'], 'v.int64', int64Bound) }),
  float64: (options?: Options) =>
    define({
      type: 'float64',
      ...bounds(options, ['minimum', 'maximum'], 'v.float64', float64Bound),
    }),
  string: (options?: Options) =>
    define({
      type: 'string',
      ...bounds(options, ['minimumLength', 'maximumLength', 'pattern'], 'v.string', stringBound),
    }),
  bytes: (options?: Options) =>
    define({ type: 'bytes', ...bounds(options, ['maximumLength'], 'v.bytes', count) }),
  timestamp: () => define({ type: 'timestamp' }),
  id: (table: unknown) => define(id(table)),
  literal: (value: unknown) => define(literal(value)),
  array: (items: unknown, options?: Options) =>
    define({
      type: 'array',
      items: validatorJson(items, 'v.array(...) items'),
      ...bounds(options, ['maximumItems'], 'v.array', count),
    }),
  object: (fields: unknown) =>
    define({ type: 'object', fields: fieldsJson(fields, 'v.object(...)') }),
  record: (values: unknown, options?: Options) =>
    define({
      type: 'record',
      values: validatorJson(values, 'v.record(...) values'),
      ...bounds(options, ['maximumItems'], 'v.record', count),
    }),
  union: (...members: unknown[]) => define(union(members)),
  open: (...given: unknown[]) => define(open(given)),
  optional: (inner: unknown) => defineOptional(validatorJson(inner, 'v.optional(...)')),
  nullable: (inner: unknown) =>
    define({ type: 'nullable', inner: validatorJson(inner, 'v.nullable(...)') }),
  any: () => define({ type: 'any' }),
  uploadGrant: () => objectValidator(UPLOAD_GRANT),
  downloadGrant: () => objectValidator(DOWNLOAD_GRANT),
  downloadUrl: () => objectValidator(DOWNLOAD_URL),
  httpDelivery: () => define(HTTP_DELIVERY),
  httpResponse: () => define(HTTP_RESPONSE),
})

/** Adds an error for unknown builders, since "v.number is not a function" names no fix. */
export const v = new Proxy(BUILDERS, {
  get(builders, name) {
    if (name in builders || typeof name === 'symbol') return builders[name as keyof typeof builders]
    throw new DefinitionError(
      `v has no "${name}"`,
      name === 'number'
        ? 'Write v.float64(), or v.int64() for whole numbers, which are bigints'
        : `Use ${quotedList(Object.keys(builders))}`,
    )
  },
})

/** Makes an object validator of checked data. */
export function objectValidator(fields: FieldsJson): ValidatorDefinition {
  return define({ type: 'object', fields })
}

/** Returns the tables that a validator references with `v.id`, each with its path. */
export function referencedTables(
  json: ValidatorJson | OptionalJson,
  path: string,
): readonly { readonly table: string; readonly path: string }[] {
  switch (json.type) {
    case 'id':
      // The table of stored files exists in every Workspace.
      return json.table === FILES_TABLE ? [] : [{ table: json.table, path }]
    case 'optional':
    case 'open':
    case 'nullable':
      return referencedTables(json.inner, path)
    case 'array':
      return referencedTables(json.items, `${path}[]`)
    case 'record':
      return referencedTables(json.values, `${path}.*`)
    case 'union':
      return json.members.flatMap((member) => referencedTables(member, path))
    case 'object':
      return Object.entries(json.fields).flatMap(([name, field]) =>
        referencedTables(field, `${path}.${name}`),
      )
    default:
      return []
  }
}
