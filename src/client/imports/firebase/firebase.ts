/**
 * Reads the exports of Firebase that stand in one directory: a managed export of Cloud Firestore
 * (`output-NUMBER` in the log format of LevelDB), `users.json` of Authentication, and the files of
 * Storage in `storage`.
 */
import { ValidationError } from '../../../value/validation-error.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import { type ExportFiles, readWhole } from '../archives/export-files.ts'
import { Spool } from '../archives/spools.ts'
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
import type { Progress, Source, SourceCollection } from '../source.ts'
import { USERS, usersCollection } from './authentication.ts'
import { type DocumentPath, type EntityReading, fieldsOf, pathOf } from './entities.ts'
import { recordsOf } from './log-records.ts'
import { parseMessage } from './protobuf.ts'

const STORAGE = 'storage/'
const OUTPUT = /^(?:.*\/)?output-[0-9]+$/
const METADATA = /^(?:.*\/)?[^/]+\.export_metadata$/
const METADATA_BYTES_MAX = 16 * 1024 * 1024
const WHOLE = '.overall_export_metadata'
const BINARY = 'application/octet-stream'
/** The field with the parent. Firestore reserves such names, so that no document has it. */
const PARENT = '__parent__'

/** Opens an export. Throws CLIENT_EXPORT_INVALID. */
export async function openFirebase(files: ExportFiles, progress: Progress): Promise<Source> {
  const outputs = files.names.filter((name) => OUTPUT.test(name) && !name.startsWith(STORAGE))
  await requireWhole(files, outputs)
  const spool = new Spool()
  try {
    const database = await spoolEntities(files, outputs, { spool, progress })
    const taken = new Set<string>()
    const tables = new Map(
      [...spool.names].sort().map((name) => [name, tableName(name, taken)] as const),
    )
    const conversions = new Conversions()
    const collections = [...tables].map(([name, table]) =>
      collectionOf({ name, table }, { spool, conversions, tables, database }),
    )
    const hasUsers = files.has(USERS)
    if (hasUsers) collections.push(usersCollection(files, tableName('auth users', taken)))
    return {
      product: 'Firebase',
      collections,
      files: () => storedFiles(files),
      conversions: () => conversions.all(),
      noCounterpart: () => withoutCounterpart(files, outputs),
      close: () => spool.remove(),
    }
  } catch (error) {
    spool.remove()
    throw error
  }
}

/** Throws CLIENT_EXPORT_INVALID if the export has no known part, or lacks one of its files. */
async function requireWhole(files: ExportFiles, outputs: readonly string[]): Promise<void> {
  const hasStorage = files.names.some((name) => name.startsWith(STORAGE))
  const hasFirestore = outputs.length > 0 || files.names.some((name) => name.endsWith(WHOLE))
  if (!hasFirestore && !hasStorage && !files.has(USERS)) {
    throw exportInvalid(
      `The export has neither a managed export of Firestore nor ${USERS} nor ${STORAGE}.`,
    )
  }
  if (!hasFirestore) return
  if (!files.names.some((name) => name.endsWith(WHOLE))) {
    throw exportInvalid(`The export of Firestore has no file *${WHOLE}, so it may not be whole.`)
  }
  for (const name of files.names.filter((each) => METADATA.test(each))) {
    const metadata = await readWhole(files, name, METADATA_BYTES_MAX)
    const named =
      Buffer.from(metadata)
        .toString('latin1')
        .match(/output-[0-9]+/g) ?? []
    const directory = name.slice(0, name.lastIndexOf('/') + 1)
    const missing = named.find((output) => !files.has(directory + output))
    if (missing !== undefined) throw exportInvalid(`${directory}${missing} is missing.`)
  }
}

/** Sorts the entities of all files by collection, and returns the database that they are of. */
async function spoolEntities(
  files: ExportFiles,
  outputs: readonly string[],
  { spool, progress }: { readonly spool: Spool; readonly progress: Progress },
): Promise<string> {
  let found: string | null = null
  for (const output of outputs) {
    progress.step(`reading ${output}`)
    for await (const record of recordsOf(output, files.read(output))) {
      progress.check()
      const { database, names } = pathIn(output, record)
      found ??= database
      if (found !== database) throw exportInvalid('The export has more than one database.')
      spool.add(collectionName(names), record)
    }
  }
  spool.flush()
  return found ?? ''
}

function pathIn(output: string, record: Uint8Array): DocumentPath {
  try {
    return pathOf(parseMessage(record))
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw exportInvalid(`${output} has a record that is no document: ${error.message}.`, error)
  }
}

/** Returns the name of a collection: `rooms/messages` of a document `rooms/r1/messages/m1`. */
function collectionName(names: readonly string[]): string {
  return names.filter((_, i) => i % 2 === 0).join('/')
}

/** Returns the ID of a document, which is unique in its collection: `r1/m1`. */
function idOf(names: readonly string[]): string {
  return names.filter((_, i) => i % 2 === 1).join('/')
}

interface Firestore {
  readonly spool: Spool
  readonly conversions: Conversions
  /** Tables by the names of collections. */
  readonly tables: ReadonlyMap<string, string>
  readonly database: string
}

function collectionOf(
  { name, table }: { readonly name: string; readonly table: string },
  { spool, conversions, tables, database }: Firestore,
): SourceCollection {
  const reading: EntityReading = {
    reference: (path) => referenceTo(path, { tables, database }),
    onConversion: (what) => conversions.add(what),
  }
  const isNested = name.includes('/')
  return {
    name,
    table,
    indexes: isNested ? [{ name: 'byParent', fields: [PARENT], unique: false }] : [],
    declare: () => {},
    async *documents() {
      conversions.begin(name)
      for await (const record of spool.read(name)) yield documentOf(record, reading)
    },
  }
}

function referenceTo(
  { database, names }: DocumentPath,
  own: Pick<Firestore, 'tables' | 'database'>,
): SourceValue {
  const text = names.join('/')
  const collection = collectionName(names)
  const table = own.tables.get(collection)
  if (table === undefined || database !== own.database) return text
  return new Reference(table, importedId(table, collection, idOf(names)), text)
}

function documentOf(
  record: Uint8Array,
  reading: EntityReading,
): SourceDocument | DefectiveDocument {
  const entity = parseMessage(record)
  const path = pathOf(entity)
  const { names } = path
  const entry = { path: names.join('/'), entity: Buffer.from(record).toString('base64') }
  const raw = Buffer.from(JSON.stringify(entry))
  try {
    const fields = new Map(fieldsOf(entity, reading))
    const parent = { ...path, names: names.slice(0, -2) }
    if (parent.names.length > 0) fields.set(PARENT, reading.reference(parent))
    return { id: idOf(names), fields, raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}

async function* storedFiles(files: ExportFiles): AsyncGenerator<SourceFile> {
  for (const path of files.names) {
    if (!path.startsWith(STORAGE)) continue
    yield {
      fileId: importedId('fil', 'firebase', path),
      key: `firebase/${path.slice(STORAGE.length)}`,
      contentType: BINARY,
      bytes: files.sizeOf(path),
      sha256: null,
      read: () => files.read(path),
    }
  }
}

function withoutCounterpart(files: ExportFiles, outputs: readonly string[]): readonly string[] {
  const unread = files.names.filter((name) => {
    const isKnown = outputs.includes(name) || name === USERS || name.startsWith(STORAGE)
    return !isKnown && !METADATA.test(name) && !name.endsWith(WHOLE)
  })
  return [
    ...(files.has(USERS)
      ? ['Authentication: password hashes, salts, second factors. The users come over.']
      : []),
    ...(files.names.some((name) => name.startsWith(STORAGE))
      ? ['Storage: content types, metadata and tokens of URLs; texts with URLs stay as they are.']
      : []),
    ...(unread.length === 0
      ? []
      : [`${unread.length} other files, which are not read, such as ${unread[0]}.`]),
    'Security rules: check them in the Functions; `svc docs functions`.',
    'Cloud Functions, indexes, time-to-live policies, Remote Config, Messaging.',
  ]
}
