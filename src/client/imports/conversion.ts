/** Converts the collections of an export to a schema, JSON lines and files. */
import { sha256Stream } from '../../system/digests.ts'
import { FIELD_NAME } from '../../value/manifest.ts'
import { plainWriter } from '../../value/plain/writer.ts'
import { plainReader } from '../../value/plain.ts'
import { encodeStored } from '../../value/stored.ts'
import { isJsonObject, parseStrictJson, ROUNDED } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import type { FieldsJson } from '../../value/validators.ts'
import { VALUE_DEPTH_MAX, type Value, valueEquals } from '../../value/values.ts'
import { explanation } from '../explanations.ts'
import { exportInvalid } from './archives/export-fault.ts'
import { EXPORT_LINE_BYTES_MAX } from './archives/lines.ts'
import { DocumentsDigest } from './documents/digests.ts'
import { importedId } from './documents/document-ids.ts'
import { fieldName, indexName } from './documents/names.ts'
import { ObjectShape } from './documents/shapes.ts'
import type { SourceDocument, SourceFile, SourceIndex } from './documents/source-values.ts'
import { readmeText } from './output/next-steps.ts'
import type { OutputDirectory } from './output/output-directory.ts'
import {
  type CollectionReport,
  type ImportReport,
  reportJson,
  reportText,
} from './output/reports.ts'
import { type SchemaTable, schemaText } from './output/schema-text.ts'
import type { Progress, Source, SourceCollection } from './source.ts'

/** The field that keeps the ID of the export, so that links and texts with it can be resolved. */
const IMPORTED_ID = 'importedId'
const FIELDS_MAX = 1_000
/** Bytes of a stored document, as the server accepts them. */
const DOCUMENT_BYTES_MAX = 1024 * 1024
/** Bytes of an index key, less what the encoding of its fields may add. */
const INDEX_TEXT_BYTES_MAX = 1_000
const REASONS_MAX = 8
/** Each field of a document is declared, regardless of its name. */
const ANY_KEY = /^/

/** Writes all of an export, and returns the report. Throws CLIENT_EXPORT_INVALID. */
export async function convert(
  source: Source,
  output: OutputDirectory,
  progress: Progress,
): Promise<ImportReport> {
  const tables: SchemaTable[] = []
  const collections: CollectionReport[] = []
  for (const collection of source.collections) {
    progress.step(`reading ${collection.name}`)
    const plan = await planOf(collection, progress)
    progress.step(`writing ${plan.table.name}`)
    tables.push(plan.table)
    collections.push(await writeCollection(collection, plan, { output, progress }))
  }
  progress.step('writing files')
  const files = await writeFiles(source, output)
  const report: ImportReport = {
    version: 1,
    source: source.product,
    collections,
    files,
    conversions: source.conversions(),
    noCounterpart: source.noCounterpart(),
  }
  output.write('schema.ts', schemaText(tables))
  output.write('report.json', reportJson(report))
  output.write('report.md', reportText(report))
  output.write('README.md', readmeText(report))
  return report
}

interface Plan {
  readonly table: SchemaTable
  readonly shape: ObjectShape
  /** Names of fields by those of the export. */
  readonly names: ReadonlyMap<string, string>
  /** The field with the ID of the export. */
  readonly idField: string
  readonly textIds: readonly string[]
}

/** Reads a collection once, for the types of its fields. */
async function planOf(collection: SourceCollection, progress: Progress): Promise<Plan> {
  const shape = new ObjectShape(FIELDS_MAX, ANY_KEY)
  collection.declare(shape)
  for await (const document of collection.documents()) {
    progress.check()
    if (!('defect' in document)) shape.add(document.fields)
  }
  if (shape.isRecord) {
    throw exportInvalid(
      `${collection.name} has more than ${FIELDS_MAX} fields.`,
      explanation({ next: collection.nextIfTooWide ?? null }),
    )
  }
  const taken = new Set<string>()
  const idField = fieldName(IMPORTED_ID, taken)
  // A field that needs no other name keeps its own.
  for (const name of shape.names) if (FIELD_NAME.test(name)) taken.add(name)
  const names = new Map(
    shape.names.map((name) => {
      const keeps = FIELD_NAME.test(name) && name !== idField
      return [name, keeps ? name : fieldName(name, taken)]
    }),
  )
  const fields: FieldsJson = {
    [idField]: { type: 'string' },
    ...Object.fromEntries([...names].map(([from, to]) => [to, shape.fieldValidator(from)])),
  }
  const indexes = [
    { name: 'byImportedId', fields: [idField], unique: true },
    ...indexesOf(collection, shape, names),
  ]
  const textIds = shape.names.filter((name) => shape.field(name).keepsIds)
  return { table: { name: collection.table, fields, indexes }, shape, names, idField, textIds }
}

/** Returns the indexes whose fields exist and whose texts are short enough for a key. */
function indexesOf(
  { indexes }: SourceCollection,
  shape: ObjectShape,
  names: ReadonlyMap<string, string>,
): readonly SourceIndex[] {
  const taken = new Set(['byImportedId'])
  return indexes.flatMap(({ name, fields, unique }) => {
    const bytes = fields.map((field) =>
      names.has(field) ? shape.field(field).keyBytes : Number.POSITIVE_INFINITY,
    )
    if (bytes.reduce((sum, each) => sum + each, 0) > INDEX_TEXT_BYTES_MAX) return []
    return [
      { name: indexName(name, taken), fields: fields.map((field) => names.get(field)!), unique },
    ]
  })
}

/** Reads a collection again, and writes what fits its validator. */
async function writeCollection(
  collection: SourceCollection,
  { table, shape, names, idField, textIds }: Plan,
  { output, progress }: { readonly output: OutputDirectory; readonly progress: Progress },
): Promise<CollectionReport> {
  const lineOf = lineWriter(table)
  const sourceDigest = sha256Stream()
  const digest = new DocumentsDigest()
  const reasons = new Set<string>()
  let leftOut = 0
  const out = output.file(`data/${table.name}.jsonl`)
  let rejected: ReturnType<OutputDirectory['file']> | null = null
  const leave = (reason: string, raw: Uint8Array): void => {
    rejected ??= output.file(`left-out/${table.name}.jsonl`)
    rejected.write(raw)
    rejected.write('\n')
    leftOut += 1
    if (reasons.size < REASONS_MAX) reasons.add(reason)
  }
  try {
    for await (const document of collection.documents()) {
      progress.check()
      sourceDigest.update(document.raw)
      sourceDigest.update(NEWLINE)
      if ('defect' in document) {
        leave(document.defect, document.raw)
        continue
      }
      if (Buffer.byteLength(document.id) > INDEX_TEXT_BYTES_MAX) {
        leave(`Expected an ID of at most ${INDEX_TEXT_BYTES_MAX} bytes.`, document.raw)
        continue
      }
      const id = importedId(table.name, collection.name, document.id)
      const fields = fieldsOf(document, { shape, names, idField })
      try {
        out.write(lineOf(id, fields))
        digest.add(id, fields)
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error
        leave(`Expected ${error.rule}.`, document.raw)
      }
    }
  } finally {
    out.close()
    ;(rejected as ReturnType<OutputDirectory['file']> | null)?.close()
  }
  const renamed = [...names].filter(([from, to]) => from !== to)
  return {
    source: collection.name,
    table: table.name,
    documents: digest.count,
    leftOut,
    reasons: [...reasons],
    sourceDigest: sourceDigest.digest().toString('hex'),
    digest: digest.hex,
    renamed: [{ from: '_id', to: idField }, ...renamed.map(([from, to]) => ({ from, to }))],
    textIds,
    indexes: table.indexes.map(({ name }) => name),
  }
}

const NEWLINE = Uint8Array.of(10)

function fieldsOf(
  { id, fields }: SourceDocument,
  { shape, names, idField }: Pick<Plan, 'shape' | 'names' | 'idField'>,
): ReadonlyMap<string, Value> {
  const own = [...fields].map(([name, value]) => {
    return [names.get(name)!, shape.convertField(name, value)] as const
  })
  return new Map<string, Value>([[idField, id], ...own])
}

/**
 * Returns a function that formats a document as `svc data import` reads it. It reads each line
 * back, and throws ValidationError unless the document is the same.
 */
function lineWriter({ fields }: SchemaTable) {
  const validator = { type: 'object', fields } as const
  const write = plainWriter(validator)
  const read = plainReader(validator)
  return (id: string, document: ReadonlyMap<string, Value>): string => {
    // The bounds of the server, so that a document fails here and not there. The parser of the
    // line below has the one for the entries of a list.
    if (!isWithin(document, VALUE_DEPTH_MAX)) {
      throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`)
    }
    if (Buffer.byteLength(encodeStored(document)) > DOCUMENT_BYTES_MAX) {
      throw new ValidationError(`at most ${DOCUMENT_BYTES_MAX} bytes`)
    }
    const plain = write(document)
    if (!isJsonObject(plain)) throw new ValidationError('an object')
    const line = JSON.stringify({ _id: id, ...plain })
    if (Buffer.byteLength(line) > EXPORT_LINE_BYTES_MAX) {
      throw new ValidationError(`a line of at most ${EXPORT_LINE_BYTES_MAX} bytes`)
    }
    const json = parseStrictJson(line, ROUNDED)
    if (!isJsonObject(json)) throw new ValidationError('an object')
    const { _id, ...rest } = json
    if (_id !== id || !valueEquals(read(rest), document)) {
      throw new ValidationError('a document that JSON lines can express')
    }
    return `${line}\n`
  }
}

/** Returns whether lists and objects of the value have at most `levels` levels. */
function isWithin(value: Value, levels: number): boolean {
  if (Array.isArray(value)) return levels > 0 && value.every((each) => isWithin(each, levels - 1))
  if (!(value instanceof Map)) return true
  if (levels === 0) return false
  for (const each of value.values()) if (!isWithin(each, levels - 1)) return false
  return true
}

async function writeFiles(source: Source, output: OutputDirectory) {
  let manifest: ReturnType<OutputDirectory['file']> | null = null
  let count = 0
  let bytes = 0
  try {
    for await (const file of source.files()) {
      manifest ??= output.file('files/manifest.jsonl')
      const path = `files/${file.fileId}`
      const { size, sha256 } = await writeFile(file, path, output)
      const { fileId, key, contentType } = file
      manifest.write(`${JSON.stringify({ fileId, path, key, contentType, size, sha256 })}\n`)
      count += 1
      bytes += size
    }
  } finally {
    manifest?.close()
  }
  return { count, bytes }
}

async function writeFile(file: SourceFile, path: string, output: OutputDirectory) {
  const out = output.file(path)
  const hash = sha256Stream()
  let size = 0
  try {
    for await (const chunk of file.read()) {
      out.write(chunk)
      hash.update(chunk)
      size += chunk.length
    }
  } finally {
    out.close()
  }
  const sha256 = hash.digest().toString('hex')
  if (file.sha256 !== null && file.sha256 !== sha256) {
    throw exportInvalid(`The file ${file.key} has another digest than the export says.`)
  }
  return { size, sha256 }
}
