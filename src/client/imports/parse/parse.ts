/**
 * Reads the classes of Parse as its REST API and its dashboard export them: one file `CLASS.json`
 * for each, a list of objects or `{"results": [...]}`, with `_SCHEMA.json` for the declared types,
 * `_Join:FIELD:CLASS.json` for relations, and `files/NAME` for the files.
 */

import {
  isJsonObject,
  type JsonObject,
  parseStrictJson,
  ROUNDED,
} from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { itemsOf } from '../archives/json-items.ts'
import { Conversions } from '../documents/conversions.ts'
import { importedId } from '../documents/document-ids.ts'
import { tableName } from '../documents/names.ts'
import type { ObjectShape } from '../documents/shapes.ts'
import {
  type DefectiveDocument,
  Reference,
  type SourceDocument,
  type SourceFile,
  type SourceValue,
} from '../documents/source-values.ts'
import type { Source, SourceCollection } from '../source.ts'
import { date, type ParseReading, readParse } from './parse-values.ts'

const CLASS_FILE = /^(?:.*\/)?([A-Za-z_][A-Za-z0-9_]*|_Join:[A-Za-z_]\w*:[A-Za-z_]\w*)\.json$/
const JOIN = /^_Join:([^:]+):([^:]+)$/
const FILE = /^(?:.*\/)?files\/([^/]+)$/
const SCHEMA = '_SCHEMA'
/** Classes of the server whose objects an application has as its own. */
const OWN_CLASSES = ['_User', '_Role']
/** Fields that users log in with, and those of Parse itself. None of them leaves the export. */
const SECRET = /^(_.*|password|authData|sessionToken)$/
const BINARY = 'application/octet-stream'

interface ParseClass {
  readonly name: string
  readonly path: string
  readonly table: string
}

type Declared = ReadonlyMap<string, JsonObject>

/** Opens an export. Throws CLIENT_EXPORT_INVALID. */
export async function openParse(files: ExportFiles): Promise<Source> {
  const paths = classFiles(files)
  const schemas = await schemasOf(files, paths.get(SCHEMA))
  const taken = new Set<string>()
  const classes: ParseClass[] = []
  for (const [name, path] of paths) {
    const isOwn = !name.startsWith('_') || OWN_CLASSES.includes(name)
    if (isOwn) classes.push({ name, path, table: tableName(name, taken) })
  }
  if (classes.length === 0) throw exportInvalid('The export has no file CLASS.json.')
  const joins: ParseClass[] = []
  for (const [name, path] of paths) {
    const [, field, owner] = JOIN.exec(name) ?? []
    if (field === undefined) continue
    joins.push({ name, path, table: tableName(`${owner} ${field}`, taken) })
  }
  const context = contextOf(files, classes)
  return {
    product: 'Parse',
    collections: [
      ...classes.map((each) => classCollection(each, schemas.get(each.name), context)),
      ...joins.map((each) => joinCollection(each, schemas, context)),
    ],
    async *files() {
      for (const file of context.stored.values()) yield file
    },
    conversions: () => context.conversions.all(),
    noCounterpart: () => withoutCounterpart([...paths.keys()], schemas, context.sawAccess()),
    close: () => {},
  }
}

function classFiles(files: ExportFiles): ReadonlyMap<string, string> {
  const paths = new Map<string, string>()
  for (const path of files.names) {
    if (FILE.test(path)) continue
    const [, name] = CLASS_FILE.exec(path) ?? []
    if (name === undefined) continue
    if (paths.has(name)) throw exportInvalid(`The export has the class ${name} twice.`)
    paths.set(name, path)
  }
  return paths
}

/** Reads the declared fields of the classes. */
async function schemasOf(
  files: ExportFiles,
  path: string | undefined,
): Promise<ReadonlyMap<string, Declared>> {
  const schemas = new Map<string, Declared>()
  if (path === undefined) return schemas
  for await (const item of itemsOf(path, files.read(path))) {
    const json = objectIn(item)
    const { className, fields } = json ?? {}
    if (typeof className !== 'string' || !isJsonObject(fields)) {
      throw exportInvalid(`${path} has an item that is no class.`)
    }
    const declared = Object.entries(fields).flatMap(([name, field]) => {
      return isJsonObject(field) ? [[name, field] as const] : []
    })
    schemas.set(className, new Map(declared))
  }
  return schemas
}

interface ParseContext {
  readonly files: ExportFiles
  readonly tables: ReadonlyMap<string, string>
  readonly stored: ReadonlyMap<string, SourceFile>
  readonly conversions: Conversions
  readonly reading: ParseReading
  readonly onAccess: () => void
  /** Returns whether an object says who may read or write it. */
  readonly sawAccess: () => boolean
}

function contextOf(files: ExportFiles, classes: readonly ParseClass[]): ParseContext {
  const tables = new Map(classes.map(({ name, table }) => [name, table]))
  const stored = new Map<string, SourceFile>()
  for (const path of files.names) {
    const [, name] = FILE.exec(path) ?? []
    if (name === undefined) continue
    stored.set(name, {
      fileId: importedId('fil', 'parse', name),
      key: `parse/${name}`,
      contentType: BINARY,
      bytes: files.sizeOf(path),
      sha256: null,
      read: () => files.read(path),
    })
  }
  const conversions = new Conversions()
  const reading: ParseReading = {
    pointer(className, id): SourceValue {
      const table = tables.get(className)
      return table === undefined ? id : new Reference(table, importedId(table, className, id), id)
    },
    file(name) {
      const found = stored.get(name)
      return found === undefined ? null : new Reference('files', found.fileId, name)
    },
    onConversion: (what) => conversions.add(what),
  }
  let hasAccess = false
  return {
    files,
    tables,
    stored,
    conversions,
    reading,
    onAccess: () => {
      hasAccess = true
    },
    sawAccess: () => hasAccess,
  }
}

function classCollection(
  { name, path, table }: ParseClass,
  declared: Declared | undefined,
  { files, tables, conversions, reading, onAccess }: ParseContext,
): SourceCollection {
  return {
    name,
    table,
    indexes: [],
    declare: (shape) => declareFields(shape, declared ?? new Map(), tables),
    async *documents() {
      conversions.begin(name)
      for await (const item of itemsOf(path, files.read(path))) {
        const json = objectIn(item)
        if (json !== null && ('_created_at' in json || '_id' in json)) {
          throw exportInvalid(`${path} is a dump of the database, and no export of Parse.`)
        }
        if (json !== null && 'ACL' in json) onAccess()
        yield documentOf(item, json, reading)
      }
    },
  }
}

/** A relation is a table of its own: each document names one member of one object. */
function joinCollection(
  { name, path, table }: ParseClass,
  schemas: ReadonlyMap<string, Declared>,
  { files, conversions, reading }: ParseContext,
): SourceCollection {
  const [, field, owner] = JOIN.exec(name)!
  const target = schemas.get(owner!)?.get(field!)?.targetClass
  const related = (id: string): SourceValue =>
    typeof target === 'string' ? reading.pointer(target, id) : id
  return {
    name,
    table,
    indexes: [
      { name: 'byOwner', fields: ['owner', 'related'], unique: true },
      { name: 'byRelated', fields: ['related'], unique: false },
    ],
    declare(shape) {
      for (const [key, value] of [
        ['owner', reading.pointer(owner!, 'x')],
        ['related', related('x')],
      ] as const) {
        if (value instanceof Reference) shape.field(key).declareReference(value.table)
        else shape.field(key).declare('string')
      }
    },
    async *documents() {
      conversions.begin(name)
      for await (const item of itemsOf(path, files.read(path))) {
        const { owningId, relatedId } = objectIn(item) ?? {}
        if (typeof owningId !== 'string' || typeof relatedId !== 'string') {
          yield { defect: 'It is no member of a relation.', raw: item }
          continue
        }
        const fields = new Map([
          ['owner', reading.pointer(owner!, owningId)],
          ['related', related(relatedId)],
        ])
        yield { id: `${owningId}/${relatedId}`, fields, raw: item }
      }
    },
  }
}

function declareFields(
  shape: ObjectShape,
  declared: Declared,
  tables: ReadonlyMap<string, string>,
): void {
  for (const name of ['createdAt', 'updatedAt']) shape.field(name).declare('timestamp')
  for (const [name, { type, targetClass }] of declared) {
    if (name === 'objectId' || SECRET.test(name) || type === 'Relation') continue
    const field = shape.field(name, type === 'ACL')
    const table = typeof targetClass === 'string' ? tables.get(targetClass) : undefined
    if (type === 'String') field.declare('string')
    else if (type === 'Number') field.declare('float64')
    else if (type === 'Boolean') field.declare('boolean')
    else if (type === 'Date') field.declare('timestamp')
    else if (type === 'Bytes') field.declare('bytes')
    else if (type === 'Array') field.items()
    else if (type === 'Pointer' && table !== undefined) field.declareReference(table)
    else if (type === 'GeoPoint') {
      for (const part of ['latitude', 'longitude']) field.fields().field(part).declare('float64')
    } else if (type === 'Object' || type === 'ACL') field.declare('any')
  }
}

function documentOf(
  item: Uint8Array,
  json: JsonObject | null,
  reading: ParseReading,
): SourceDocument | DefectiveDocument {
  if (json === null) return { defect: 'It is no JSON object.', raw: Buffer.from('null') }
  const own = Object.entries(json).filter(([name]) => !SECRET.test(name))
  // A line of a file that is left out must not have what users log in with.
  const hasSecrets = own.length < Object.keys(json).length
  const raw = hasSecrets ? Buffer.from(JSON.stringify(Object.fromEntries(own))) : oneLine(item)
  const { objectId: id } = json
  if (typeof id !== 'string') return { defect: 'It has no objectId.', raw }
  try {
    const fields = new Map<string, SourceValue>()
    for (const [name, content] of own) {
      if (name === 'objectId') continue
      const isStamp = name === 'createdAt' || name === 'updatedAt'
      const value =
        isStamp && typeof content === 'string' ? date(content) : readParse(content, reading)
      if (value !== undefined) fields.set(name, value)
    }
    return { id, fields, raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}

/** An item may be written over several lines; white space inside texts is escaped in JSON. */
function oneLine(item: Uint8Array): Uint8Array {
  return item.map((byte) => (byte === 10 || byte === 13 ? 32 : byte))
}

function objectIn(item: Uint8Array): JsonObject | null {
  try {
    const json = parseStrictJson(item, ROUNDED)
    return isJsonObject(json) ? json : null
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return null
  }
}

function withoutCounterpart(
  names: readonly string[],
  schemas: ReadonlyMap<string, Declared>,
  hasAccess: boolean,
): readonly string[] {
  const lost = [...schemas].flatMap(([owner, fields]) =>
    [...fields]
      .filter(
        ([name, { type }]) => type === 'Relation' && !names.includes(`_Join:${name}:${owner}`),
      )
      .filter(() => names.includes(owner))
      .map(([name]) => `${owner}.${name}: a relation, whose members are not in the export.`),
  )
  const system = names.filter((name) => {
    return name.startsWith('_') && !JOIN.test(name) && ![...OWN_CLASSES, SCHEMA].includes(name)
  })
  return [
    ...(names.includes('_User')
      ? ['_User: passwords, sessions and linked logins; `svc docs identity`. The users come over.']
      : []),
    ...(hasAccess
      ? ['ACL: the field is kept, and nothing enforces it. Check it in the Functions.']
      : []),
    ...lost,
    ...system.map((name) => `${name}: objects of Parse itself.`),
    'Class-level permissions, cloud code, jobs, live queries, indexes: `svc docs functions`.',
  ]
}
