/**
 * Reads a snapshot export of Convex: a ZIP archive with `TABLE/documents.jsonl`,
 * `TABLE/generated_schema.jsonl`, `_tables/documents.jsonl`, and `_storage` with the files.
 */
import { isContentType } from '../../../value/files/files.ts'
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseStrictJson,
  ROUNDED,
} from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { type ExportLine, linesOf } from '../archives/lines.ts'
import { Conversions } from '../documents/conversions.ts'
import { importedId } from '../documents/document-ids.ts'
import { tableName } from '../documents/names.ts'
import {
  type DefectiveDocument,
  Reference,
  type SourceDocument,
  type SourceFile,
  type SourceValue,
} from '../documents/source-values.ts'
import type { Source, SourceCollection } from '../source.ts'
import { tableNumberOf } from './convex-ids.ts'
import { type Alternatives, parseShape, UNKNOWN } from './convex-shapes.ts'
import { readConvex } from './convex-values.ts'

const DOCUMENTS = '/documents.jsonl'
const SCHEMA = '/generated_schema.jsonl'
const TABLES = '_tables'
const STORAGE = '_storage'
const COMPONENTS = '_components/'
const BINARY = 'application/octet-stream'
/** Characters of the contexts of one table, which are kept in memory. */
const CONTEXTS_CHARACTERS_MAX = 256 * 1024 * 1024

/** Opens an export. Throws CLIENT_EXPORT_INVALID. */
export async function openConvex(files: ExportFiles): Promise<Source> {
  if (!files.has(`${TABLES}${DOCUMENTS}`)) {
    throw exportInvalid(`The export has no ${TABLES}${DOCUMENTS}, as one of Convex has.`)
  }
  const numbers = await tableNumbers(files)
  const stored = await storedFiles(files)
  const taken = new Set<string>()
  const collections: { readonly name: string; readonly table: string }[] = []
  for (const name of files.names) {
    if (!name.endsWith(DOCUMENTS) || name.startsWith('_')) continue
    const source = name.slice(0, -DOCUMENTS.length)
    if (!source.includes('/')) collections.push({ name: source, table: tableName(source, taken) })
  }
  const tables = new Map(collections.map(({ name, table }) => [name, table]))
  const conversions = new Conversions()
  const reading = {
    text(text: string): SourceValue {
      const number = tableNumberOf(text)
      if (number === null) return text
      if (number === stored.number) {
        const file = stored.files.get(text)
        return file === undefined ? text : new Reference('files', file.fileId, text)
      }
      const name = numbers.get(number)
      const table = name === undefined ? undefined : tables.get(name)
      if (name === undefined || table === undefined) return text
      return new Reference(table, importedId(table, name, text), text)
    },
    onConversion: (what: string) => conversions.add(what),
  }
  return {
    product: 'Convex',
    collections: collections.map(({ name, table }): SourceCollection => {
      return {
        name,
        table,
        indexes: [],
        declare: (fields) => void fields.field('_creationTime').declare('float64'),
        async *documents() {
          conversions.begin(name)
          const { shapes, contexts } = await schemaOf(files, name)
          const file = `${name}${DOCUMENTS}`
          for await (const line of linesOf(file, files.read(file))) {
            yield documentOf(line, (json, id) => {
              const context = contexts.get(id)
              return readConvex(
                json,
                shapes,
                context === undefined ? undefined : (JSON.parse(context) as Json),
                reading,
              )
            })
          }
        },
      }
    }),
    async *files() {
      for (const file of stored.files.values()) yield file
    },
    conversions: () => conversions.all(),
    noCounterpart: () => withoutCounterpart(files),
    close: () => {},
  }
}

/** Reads the names of the tables by the numbers that IDs begin with. */
async function tableNumbers(files: ExportFiles): Promise<ReadonlyMap<number, string>> {
  const numbers = new Map<number, string>()
  for await (const json of objectsOf(files, `${TABLES}${DOCUMENTS}`)) {
    const { name, id } = json
    if (typeof name === 'string' && typeof id === 'number') numbers.set(id, name)
  }
  return numbers
}

interface StoredFiles {
  /** The number of the table; null if there are no files. */
  readonly number: number | null
  readonly files: ReadonlyMap<string, SourceFile>
}

async function storedFiles(files: ExportFiles): Promise<StoredFiles> {
  const found = new Map<string, SourceFile>()
  let number: number | null = null
  const metadata = `${STORAGE}${DOCUMENTS}`
  if (!files.has(metadata)) return { number, files: found }
  const paths = new Map<string, string>()
  for (const name of files.names) {
    const [, id] = /^_storage\/([0-9a-z]+)(?:\.[^/]*)?$/.exec(name) ?? []
    if (id !== undefined) paths.set(id, name)
  }
  for await (const { _id: id, contentType, sha256 } of objectsOf(files, metadata)) {
    if (typeof id !== 'string') throw exportInvalid(`${metadata} has a file without an ID.`)
    const path = paths.get(id)
    if (path === undefined) throw exportInvalid(`The file ${id} is not in the export.`)
    number ??= tableNumberOf(id)
    found.set(id, {
      fileId: importedId('fil', STORAGE, id),
      key: `convex/${path.slice(STORAGE.length + 1)}`,
      contentType:
        typeof contentType === 'string' && isContentType(contentType) ? contentType : BINARY,
      bytes: files.sizeOf(path),
      sha256: typeof sha256 === 'string' ? Buffer.from(sha256, 'base64').toString('hex') : null,
      read: () => files.read(path),
    })
  }
  return { number, files: found }
}

/** Reads the shape of a table, and the contexts of its documents by their IDs. */
async function schemaOf(files: ExportFiles, table: string) {
  const contexts = new Map<string, string>()
  const name = `${table}${SCHEMA}`
  let shapes: Alternatives | null = null
  if (!files.has(name)) return { shapes: UNKNOWN, contexts }
  let characters = 0
  for await (const { number, content } of linesOf(name, files.read(name))) {
    const json = jsonOf(content, name, number)
    if (typeof json === 'string') shapes = shapeOf(json, name)
    else if (isJsonObject(json)) {
      for (const [id, context] of Object.entries(json)) {
        const text = JSON.stringify(context)
        characters += id.length + text.length
        contexts.set(id, text)
      }
    }
    if (characters > CONTEXTS_CHARACTERS_MAX) throw exportInvalid(`${name} is too long.`)
  }
  return { shapes: shapes ?? UNKNOWN, contexts }
}

function shapeOf(text: string, name: string): Alternatives {
  try {
    return parseShape(text)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw exportInvalid(`${name} has a shape that is not known: ${error.message}.`, error)
  }
}

function documentOf(
  { content }: ExportLine,
  read: (json: JsonObject, id: string) => SourceValue,
): SourceDocument | DefectiveDocument {
  // The content may be a part of a buffer that is used again.
  const raw = content.slice()
  try {
    const json = parseStrictJson(content, ROUNDED)
    if (!isJsonObject(json) || typeof json._id !== 'string') {
      return { defect: 'It has no ID.', raw }
    }
    const { _id: id, ...rest } = json
    return { id, fields: read(rest, id) as ReadonlyMap<string, SourceValue>, raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}

async function* objectsOf(files: ExportFiles, name: string): AsyncGenerator<JsonObject> {
  for await (const { number, content } of linesOf(name, files.read(name))) {
    const json = jsonOf(content, name, number)
    if (!isJsonObject(json)) throw exportInvalid(`Line ${number} of ${name} is no object.`)
    yield json
  }
}

function jsonOf(content: Uint8Array, name: string, line: number): Json {
  try {
    return parseStrictJson(content, ROUNDED)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw exportInvalid(`Line ${line} of ${name} is no JSON: expected ${error.rule}.`, error)
  }
}

function withoutCounterpart(files: ExportFiles): readonly string[] {
  const components = new Set(
    files.names
      .filter((name) => name.startsWith(COMPONENTS))
      .map((name) => name.slice(COMPONENTS.length).split('/')[0]!),
  )
  return [
    'Functions, HTTP actions, Crons, scheduled functions: write them anew, `svc docs functions`.',
    'Indexes and search indexes: an export has none. Declare those that the code uses.',
    'Validators of the schema: an export has only the types that occur, as schema.ts has them.',
    'Environment variables and authentication: set them anew; `svc docs configuration, identity`.',
    ...(files.has(`${STORAGE}${DOCUMENTS}`)
      ? []
      : ['Files: the export was made without --include-file-storage.']),
    ...[...components].map((name) => `The data of the component ${name}.`),
  ]
}
