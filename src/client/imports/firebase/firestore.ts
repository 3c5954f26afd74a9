/** Collections of Cloud Firestore as tables, for each form of an export. */
import { ValidationError } from '../../../value/validation-error.ts'
import type { Spool } from '../archives/spools.ts'
import type { Conversions } from '../documents/conversions.ts'
import { importedId } from '../documents/document-ids.ts'
import { tableName } from '../documents/names.ts'
import {
  type DefectiveDocument,
  Reference,
  type SourceDocument,
  type SourceValue,
} from '../documents/source-values.ts'
import type { SourceCollection } from '../source.ts'
import type { DocumentPath, EntityReading } from './entities.ts'

/** The field with the parent. Firestore reserves such names, so that no document has it. */
const PARENT = '__parent__'

interface FirestoreRecord {
  /** Names of collections and IDs of documents in turn. */
  readonly names: readonly string[]
  /** The document as one line of JSON. */
  readonly raw: Uint8Array
  /** Reads the fields. Throws ValidationError. */
  fields(reading: EntityReading): ReadonlyMap<string, SourceValue>
}

export interface FirestoreExport {
  /** Records by the names of their collections. */
  readonly spool: Spool
  /** The project and the database; empty where the export does not have them. */
  readonly database: string
  decode(record: Uint8Array): FirestoreRecord
}

/** Returns the name of a collection: `rooms/messages` of a document `rooms/r1/messages/m1`. */
export function collectionName(names: readonly string[]): string {
  return names.filter((_, i) => i % 2 === 0).join('/')
}

/** Returns the ID of a document, which is unique in its collection: `r1/m1`. */
function idOf(names: readonly string[]): string {
  return names.filter((_, i) => i % 2 === 1).join('/')
}

/** Returns the collections in the order of their names. `taken` has the names of tables. */
export function firestoreCollections(
  exported: FirestoreExport,
  conversions: Conversions,
  taken: Set<string>,
): readonly SourceCollection[] {
  const { spool } = exported
  const tables = new Map(
    [...spool.names].sort().map((name) => [name, tableName(name, taken)] as const),
  )
  return [...tables].map(([name, table]) => {
    const reading: EntityReading = {
      reference: (path) => referenceTo(path, { tables, database: exported.database }),
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
        for await (const record of spool.read(name)) yield documentOf(record, exported, reading)
      },
    }
  })
}

interface Tables {
  /** Tables by the names of collections. */
  readonly tables: ReadonlyMap<string, string>
  readonly database: string
}

function referenceTo({ database, names }: DocumentPath, own: Tables): SourceValue {
  const text = names.join('/')
  const collection = collectionName(names)
  const table = own.tables.get(collection)
  if (table === undefined || database !== own.database) return text
  return new Reference(table, importedId(table, collection, idOf(names)), text)
}

function documentOf(
  record: Uint8Array,
  { database, decode }: FirestoreExport,
  reading: EntityReading,
): SourceDocument | DefectiveDocument {
  const { names, raw, fields } = decode(record)
  try {
    const own = new Map(fields(reading))
    const parent = names.slice(0, -2)
    if (parent.length > 0) own.set(PARENT, reading.reference({ database, names: parent }))
    return { id: idOf(names), fields: own, raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}
