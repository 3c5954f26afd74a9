/**
 * Reads a backup of PocketBase: `data.db`, a SQLite file with one table for each collection, and
 * `storage/COLLECTION/RECORD/NAME` with the files. Versions before 0.23 keep the fields of a
 * collection in the column `schema`, later ones in `fields`.
 */
import { isContentType } from '../../../value/files/files.ts'
import { isJsonObject, type Json, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type {
  ForeignDatabase,
  ForeignRow,
  ForeignTable,
} from '../../development/workspace-tools.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import { type ExportFiles, readWhole } from '../archives/export-files.ts'
import { importedId } from '../documents/document-ids.ts'
import { tableName } from '../documents/names.ts'
import {
  type DefectiveDocument,
  Reference,
  type SourceDocument,
  type SourceFile,
  type SourceIndex,
  type SourceValue,
} from '../documents/source-values.ts'
import type { Source, SourceCollection } from '../source.ts'
import {
  declareFields,
  type FieldReading,
  fieldsOf,
  type PocketBaseField,
  readFields,
} from './pocketbase-fields.ts'
import { indexOf } from './pocketbase-indexes.ts'

const STORAGE = /^storage\/([^/]+)\/([^/]+)\/([^/]+)$/
const ATTRIBUTES = '.attrs'
const ATTRIBUTES_BYTES_MAX = 64 * 1024
const BINARY = 'application/octet-stream'
const RULES = ['listRule', 'viewRule', 'createRule', 'updateRule', 'deleteRule'] as const

interface Collection {
  readonly id: string
  readonly name: string
  readonly kind: string
  readonly isSystem: boolean
  readonly fields: readonly Json[]
  /** SQL statements. */
  readonly indexes: readonly string[]
  /** Names of the rules that are set. */
  readonly rules: readonly string[]
}

interface OpenCollection extends Collection {
  readonly table: string
  readonly stored: ForeignTable
}

/** Reads a backup whose `data.db` is open. Throws CLIENT_EXPORT_INVALID. */
export function openPocketBase(files: ExportFiles, database: ForeignDatabase): Source {
  const all = collectionsOf(database)
  const taken = new Set<string>()
  const collections: OpenCollection[] = []
  for (const collection of all) {
    if (collection.isSystem || collection.kind === 'view') continue
    const stored = database.tables.find(({ name }) => name === collection.name)
    if (stored === undefined || !stored.columns.includes('id')) {
      throw exportInvalid(`The collection ${collection.name} has no table with an ID.`)
    }
    collections.push({ ...collection, stored, table: tableName(collection.name, taken) })
  }
  const byId = new Map(collections.map((each) => [each.id, each]))
  return {
    product: 'PocketBase',
    collections: collections.map((each) => sourceCollection(each, { files, database, byId })),
    async *files() {
      for (const name of files.names) {
        const file = await storedFile(files, name, byId)
        if (file !== null) yield file
      }
    },
    conversions: () => [],
    noCounterpart: () => withoutCounterpart(all, database),
    close: () => database.close(),
  }
}

function collectionsOf(database: ForeignDatabase): readonly Collection[] {
  const table = database.tables.find(({ name }) => name === '_collections')
  if (table === undefined) throw exportInvalid('data.db has no collections, as one of PocketBase.')
  const found = [...rowsOf(database, table)].map((row): Collection => {
    const { id, name, type } = row
    if (typeof id !== 'string' || typeof name !== 'string' || typeof type !== 'string') {
      throw exportInvalid('data.db has a collection without an ID, a name or a type.')
    }
    const indexes = listIn(row.indexes, name)
    return {
      id,
      name,
      kind: type,
      isSystem: row.system === 1n || name.startsWith('_'),
      fields: listIn(row.fields ?? row.schema, name),
      indexes: indexes.filter((sql) => typeof sql === 'string'),
      rules: RULES.filter((rule) => typeof row[rule] === 'string'),
    }
  })
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function listIn(text: unknown, collection: string): readonly Json[] {
  try {
    const json = typeof text === 'string' && text !== '' ? parseStrictJson(text, ROUNDED) : []
    if (Array.isArray(json)) return json
    return json === null ? [] : [json]
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw exportInvalid(`The collection ${collection} is described by no JSON.`, error)
  }
}

interface Backup {
  readonly files: ExportFiles
  readonly database: ForeignDatabase
  readonly byId: ReadonlyMap<string, OpenCollection>
}

function sourceCollection(
  collection: OpenCollection,
  { files, database, byId }: Backup,
): SourceCollection {
  const { id: collectionId, name, table, stored } = collection
  const fields = fieldsOf(collection.fields, stored.columns)
  const readable = { ...stored, columns: ['id', ...fields.map((field) => field.name)] }
  const readingOf = (recordId: string): FieldReading => ({
    file(fileName) {
      const path = `storage/${collectionId}/${recordId}/${fileName}`
      return files.has(path) ? new Reference('files', fileIdOf(path), fileName) : fileName
    },
    relation(target, id): SourceValue {
      const found = target === null ? undefined : byId.get(target)
      if (found === undefined) return id
      return new Reference(found.table, importedId(found.table, found.name, id), id)
    },
  })
  return {
    name,
    table,
    indexes: collection.indexes.map(indexOf).filter((index): index is SourceIndex => {
      return index?.fields.every((field) => fields.some(({ name: own }) => own === field)) === true
    }),
    declare: (shape) => declareFields(shape, fields, (id) => byId.get(id)?.table ?? null),
    async *documents() {
      for (const row of rowsOf(database, readable)) yield documentOf(row, fields, readingOf)
    },
  }
}

/** Yields rows. Throws CLIENT_EXPORT_INVALID where SQLite cannot read one. */
function* rowsOf(database: ForeignDatabase, table: ForeignTable): Generator<ForeignRow> {
  const rows = database.rows(table)[Symbol.iterator]()
  for (;;) {
    let next: IteratorResult<ForeignRow>
    try {
      next = rows.next()
    } catch (error) {
      throw exportInvalid(`The table ${table.name} of data.db is damaged.`, error)
    }
    if (next.done === true) return
    yield next.value
  }
}

function documentOf(
  row: ForeignRow,
  fields: readonly PocketBaseField[],
  readingOf: (recordId: string) => FieldReading,
): SourceDocument | DefectiveDocument {
  const raw = Buffer.from(rowText(row))
  const { id } = row
  if (typeof id !== 'string') return { defect: 'It has no ID.', raw }
  try {
    return { id, fields: readFields(row, fields, readingOf(id)), raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}

/** The row as JSON. An integer is written with all of its digits. */
function rowText(row: ForeignRow): string {
  const members = Object.entries(row).map(([name, value]) => {
    const text =
      typeof value === 'bigint'
        ? String(value)
        : JSON.stringify(
            value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
          )
    return `${JSON.stringify(name)}:${text}`
  })
  return `{${members.join(',')}}`
}

function fileIdOf(path: string): string {
  return importedId('fil', 'pocketbase', path)
}

/** Returns a file of a record; null for thumbnails and attributes. */
async function storedFile(
  files: ExportFiles,
  path: string,
  byId: ReadonlyMap<string, OpenCollection>,
): Promise<SourceFile | null> {
  const [, collectionId, recordId, fileName] = STORAGE.exec(path) ?? []
  const collection = collectionId === undefined ? undefined : byId.get(collectionId)
  if (collection === undefined || fileName!.endsWith(ATTRIBUTES)) return null
  return {
    fileId: fileIdOf(path),
    key: `pocketbase/${collection.name}/${recordId}/${fileName}`,
    contentType: await contentTypeOf(files, `${path}${ATTRIBUTES}`),
    bytes: files.sizeOf(path),
    sha256: null,
    read: () => files.read(path),
  }
}

async function contentTypeOf(files: ExportFiles, attributes: string): Promise<string> {
  if (!files.has(attributes)) return BINARY
  try {
    const json = parseStrictJson(await readWhole(files, attributes, ATTRIBUTES_BYTES_MAX))
    const type = isJsonObject(json) ? json['user.content_type'] : null
    return typeof type === 'string' && isContentType(type) ? type : BINARY
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return BINARY
  }
}

function withoutCounterpart(
  collections: readonly Collection[],
  database: ForeignDatabase,
): readonly string[] {
  const countOf = (name: string): number => {
    const table = database.tables.find((each) => each.name === name)
    if (table === undefined) return 0
    let count = 0
    for (const _ of rowsOf(database, { ...table, columns: table.columns.slice(0, 1) })) count += 1
    return count
  }
  const own = collections.filter(({ isSystem }) => !isSystem)
  return [
    ...own
      .filter(({ kind }) => kind === 'auth')
      .map(({ name }) => {
        return (
          `${name}: passwords, tokens and logins of its users. Their records come over; they log ` +
          'in with an identity provider, `svc docs identity`.'
        )
      }),
    ...collections
      .filter(({ name, isSystem }) => isSystem && countOf(name) > 0)
      .map(({ name }) => `${name}: ${countOf(name)} records of PocketBase itself.`),
    ...own
      .filter(({ kind }) => kind === 'view')
      .map(({ name }) => `${name}: a view. Write a Query that returns the same.`),
    ...own
      .filter(({ rules }) => rules.length > 0)
      .map(({ name, rules }) => `${name}: ${rules.join(', ')}. Check them in the Functions.`),
    ...own.flatMap(({ name, indexes }) =>
      indexes.filter((sql) => indexOf(sql) === null).map((sql) => `${name}: the index ${sql}`),
    ),
    'Hooks, migrations, Crons and settings: they are no data; `svc docs functions, scheduling`.',
  ]
}
