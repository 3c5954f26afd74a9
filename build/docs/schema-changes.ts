/**
 * The table of the guide to changes of a schema: what each change allows. The comparison that the
 * server makes decides every cell.
 */
import { schemaChanges } from '../../src/product/compatibility/schema-changes.ts'
import type { IndexManifest, TableManifest } from '../../src/value/manifest.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../src/value/validators.ts'
import { between, table } from './markdown.ts'

/** The topic of the guide. */
export const SCHEMA_CHANGES = 'schema-changes'

const string: ValidatorJson = { type: 'string' }
const literal = (text: string): ValidatorJson => ({ type: 'literal', value: { string: text } })
const optional = (inner: ValidatorJson): OptionalJson => ({ type: 'optional', inner })
const withDefault = (inner: ValidatorJson, value: string): OptionalJson => {
  return { type: 'optional', inner, default: value }
}
const union = (...names: string[]): ValidatorJson => {
  return { type: 'union', members: names.map(literal) }
}
const open = (...names: string[]): ValidatorJson => ({ type: 'open', inner: union(...names) })
const object = (fields: FieldsJson): ValidatorJson => ({ type: 'object', fields })
const array = (items: ValidatorJson): ValidatorJson => ({ type: 'array', items })
const upTo = (maximumLength: number): ValidatorJson => ({ type: 'string', maximumLength })

interface Example {
  readonly name: string
  /** Null without the table. */
  readonly before: Omit<TableManifest, 'name'> | null
  readonly after: Omit<TableManifest, 'name'> | null
}

function ofFields(name: string, before: FieldsJson, after: FieldsJson): Example {
  return { name, before: { fields: before, indexes: [] }, after: { fields: after, indexes: [] } }
}

function ofIndexes(name: string, before: IndexManifest[], after: IndexManifest[]): Example {
  const fields = { email: string }
  return { name, before: { fields, indexes: before }, after: { fields, indexes: after } }
}

const INDEX = { name: 'byEmail', fields: ['email'], unique: false }
const UNIQUE = { ...INDEX, unique: true }
const TABLE = { fields: { email: string }, indexes: [] }

const EXAMPLES: readonly Example[] = [
  ofFields('add an optional field', {}, { nick: optional(string) }),
  ofFields('add a field with a default', {}, { state: withDefault(string, 'open') }),
  ofFields('add a required field', {}, { nick: string }),
  ofFields('remove an optional field', { nick: optional(string) }, {}),
  ofFields('remove a field with a default', { nick: withDefault(string, '') }, {}),
  ofFields('remove a required field', { nick: string }, {}),
  ofFields('an optional field becomes required', { nick: optional(string) }, { nick: string }),
  ofFields('a required field becomes optional', { nick: string }, { nick: optional(string) }),
  ofFields('a required field gets a default', { nick: string }, { nick: withDefault(string, '') }),
  ofFields('a default becomes required', { nick: withDefault(string, '') }, { nick: string }),
  ofFields('add a member to a union', { state: union('a') }, { state: union('a', 'b') }),
  ofFields('remove a member of a union', { state: union('a', 'b') }, { state: union('a') }),
  ofFields('make a union open', { state: union('a') }, { state: open('a') }),
  ofFields('add a member to an open union', { state: open('a') }, { state: open('a', 'b') }),
  ofFields('rename a field', { text: string }, { body: string }),
  ofFields('another type', { size: string }, { size: { type: 'int64' } }),
  ofFields(
    'add an optional field to an object',
    { home: object({ city: string }) },
    { home: object({ city: string, street: optional(string) }) },
  ),
  ofFields(
    'add an optional field inside an array',
    { homes: array(object({ city: string })) },
    { homes: array(object({ city: string, street: optional(string) })) },
  ),
  ofFields('tighten a bound', { nick: upTo(20) }, { nick: upTo(10) }),
  ofFields('loosen a bound', { nick: upTo(10) }, { nick: upTo(20) }),
  ofIndexes('add an index', [], [INDEX]),
  ofIndexes('remove an index', [INDEX], []),
  ofIndexes('add a unique index', [], [UNIQUE]),
  ofIndexes('remove a unique index', [UNIQUE], []),
  { name: 'add a table', before: null, after: TABLE },
  { name: 'remove a table', before: TABLE, after: null },
]

const NAME = 'users'

/** Replaces the table of the guide. */
export function withSchemaChanges(guide: string): string {
  return between(guide, 'changes', schemaChangesTable())
}

export function schemaChangesTable(): string {
  return table(['Change', 'Promote', 'Side by side', 'Roll back'], EXAMPLES.map(rowOf))
}

function rowOf({ name, before, after }: Example): string[] {
  const tables = (table: Example['before']) =>
    new Map(table === null ? [] : [[NAME, { name: NAME, ...table }]])
  const changes = schemaChanges(tables(after), tables(before))
  const cell = (outcomes: readonly string[]) =>
    outcomes.includes('documents') ? 'documents' : 'yes'
  const [refusal] = changes.flatMap(({ refusals }) => refusals)
  return [
    name,
    cell(changes.map(({ promote }) => promote)),
    refusal === undefined ? 'yes' : `no: ${reasonOf(refusal)}`,
    cell(changes.map(({ rollback }) => rollback)),
  ]
}

/** Returns the refusal without the name of the table; the guide says what the ways out are. */
function reasonOf(refusal: string): string {
  const [change, example] = refusal.split('; ')
  return [change!.slice(NAME.length + 1), example!.replace(/(\{.*\})$/, '`$1`')].join('; ')
}
