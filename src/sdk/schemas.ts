/** `table` and `defineSchema`: declare the tables of a Workspace, which are checked on load. */
import { isTableName } from '../value/ids.ts'
import {
  FIELD_NAME,
  INDEX_FIELDS_MAX,
  INDEX_NAME,
  INDEXES_MAX,
  RESERVED_TABLES,
  TABLES_MAX,
} from '../value/manifest.ts'
import type { FieldsJson } from '../value/validators.ts'
import { DefinitionError, isPlainObject, quotedList } from './definition-errors.ts'
import {
  fieldsJson,
  kindOf,
  objectValidator,
  referencedTables,
  type ValidatorDefinition,
} from './validators.ts'

const TABLE = Symbol.for('svc.table')
const SCHEMA = Symbol.for('svc.schema')

interface IndexDefinition {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
}

/** The part of a table that the runner reads. */
interface TableContent {
  readonly fields: FieldsJson
  /** Sorted by name. */
  readonly indexes: readonly IndexDefinition[]
}

export interface TableDefinition {
  readonly [TABLE]: TableContent
  index(name: string, fields: readonly string[]): TableDefinition
  unique(name: string, fields: readonly string[]): TableDefinition
}

export interface SchemaDefinition {
  readonly [SCHEMA]: { readonly tables: { readonly [name: string]: TableContent } }
  document(table: string): ValidatorDefinition
}

export function table(fields: unknown): TableDefinition {
  const json = fieldsJson(fields, 'table(...)')
  for (const name of Object.keys(json)) {
    if (FIELD_NAME.test(name)) continue
    throw new DefinitionError(
      `table(...) has a field "${name}"`,
      name.startsWith('_')
        ? 'Choose another name: those that begin with _ belong to svc'
        : 'Use a letter, then letters, digits and _, at most 64 characters',
    )
  }
  return tableOf({ fields: json, indexes: [] })
}

function tableOf(content: TableContent): TableDefinition {
  const add = (name: string, fields: readonly string[], unique: boolean) =>
    tableOf({ ...content, indexes: withIndex(content, { name, fields, unique }) })
  return Object.freeze({
    [TABLE]: content,
    index: (name: string, fields: readonly string[]) => add(name, fields, false),
    unique: (name: string, fields: readonly string[]) => add(name, fields, true),
  })
}

function withIndex(content: TableContent, index: IndexDefinition): readonly IndexDefinition[] {
  const { name, fields, unique } = index
  if (typeof name !== 'string' || !INDEX_NAME.test(name)) {
    throw new DefinitionError(
      `An index is named ${typeof name === 'string' ? `"${name}"` : kindOf(name)}`,
      'Use a letter, then letters, digits and _, at most 64 characters, such as "byChannel"',
    )
  }
  const owner = `Index "${name}"`
  if (content.indexes.some((other) => other.name === name)) {
    throw new DefinitionError(`${owner} is declared twice`, 'Rename or remove one of the two')
  }
  if (content.indexes.length === INDEXES_MAX) {
    throw new DefinitionError(
      `${owner} is one index too many`,
      `Remove one: a table has at most ${INDEXES_MAX}`,
    )
  }
  if (!Array.isArray(fields) || fields.length === 0) {
    throw new DefinitionError(`${owner} has no fields`, 'List them: ["channel", "author"]')
  }
  if (fields.length > INDEX_FIELDS_MAX) {
    throw new DefinitionError(
      `${owner} has ${fields.length} fields`,
      `Remove some: an index has at most ${INDEX_FIELDS_MAX}`,
    )
  }
  fields.forEach((field: unknown, i) => {
    checkIndexField(content.fields, fields, field, i, owner)
  })
  const added = { name, fields: Object.freeze([...fields]), unique }
  return [...content.indexes, added].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function checkIndexField(
  declared: FieldsJson,
  fields: readonly unknown[],
  field: unknown,
  position: number,
  owner: string,
): void {
  if (field === '_createdAt') {
    throw new DefinitionError(
      `${owner} lists "_createdAt"`,
      'Leave it out: every index ends with the order of creation, and ranges may use it',
    )
  }
  if (typeof field !== 'string' || !Object.hasOwn(declared, field)) {
    throw new DefinitionError(
      `${owner} lists ${typeof field === 'string' ? `"${field}"` : kindOf(field)}, ` +
        'which is not a field of the table',
      `Use ${quotedList(Object.keys(declared))}`,
    )
  }
  if (fields.indexOf(field) !== position) {
    throw new DefinitionError(`${owner} lists "${field}" twice`, 'List each field once')
  }
}

export function defineSchema(tables: unknown): SchemaDefinition {
  if (!isPlainObject(tables)) {
    throw new DefinitionError(
      `defineSchema(...) is given ${kindOf(tables)}`,
      'Write defineSchema({ messages: table({ ... }) })',
    )
  }
  const names = Object.keys(tables)
  if (names.length > TABLES_MAX) {
    throw new DefinitionError(
      `The schema has ${names.length} tables`,
      `Remove some: a Workspace has at most ${TABLES_MAX}`,
    )
  }
  const contents: { [name: string]: TableContent } = {}
  for (const name of names) contents[name] = tableContent(name, tables[name])
  for (const name of names) checkReferences(name, contents[name]!.fields, names)
  return Object.freeze({
    [SCHEMA]: Object.freeze({ tables: contents }),
    document: (name: string) => documentOf(contents, name),
  })
}

function tableContent(name: string, value: unknown): TableContent {
  if (RESERVED_TABLES.includes(name)) {
    throw new DefinitionError(
      `"${name}" is reserved for the server and cannot be a table`,
      'Give the table another name',
    )
  }
  if (!isTableName(name)) {
    throw new DefinitionError(
      `"${name}" is not a name for a table`,
      'Use a lower-case letter, then letters and digits, at most 64 characters',
    )
  }
  const content =
    typeof value === 'object' && value !== null
      ? (value as Partial<TableDefinition>)[TABLE]
      : undefined
  if (content === undefined) {
    throw new DefinitionError(
      `"${name}" is ${kindOf(value)}, not a table`,
      'Write table({ ... }) around its fields',
    )
  }
  return content
}

function checkReferences(name: string, fields: FieldsJson, tables: readonly string[]): void {
  for (const [field, json] of Object.entries(fields)) {
    for (const { table: target, path } of referencedTables(json, `${name}.${field}`)) {
      if (tables.includes(target)) continue
      throw new DefinitionError(
        `Field ${path} is an ID of "${target}", which is not a table`,
        `Use ${quotedList(tables)}`,
      )
    }
  }
}

function documentOf(
  contents: { readonly [name: string]: TableContent },
  name: string,
): ValidatorDefinition {
  const content = Object.hasOwn(contents, name) ? contents[name] : undefined
  if (content === undefined) {
    throw new DefinitionError(
      `schema.document(...) is given ${typeof name === 'string' ? `"${name}"` : kindOf(name)}`,
      `Use ${quotedList(Object.keys(contents))}`,
    )
  }
  return objectValidator({
    _id: { type: 'id', table: name },
    _createdAt: { type: 'timestamp' },
    _revision: { type: 'int64' },
    ...content.fields,
  })
}
