/**
 * The Realtime Database, from the JSON file that its console exports. Each child of a path that is
 * a table is a document.
 */
import { isJsonObject, type Json, parseStrictJson, ROUNDED } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { explanation } from '../../explanations.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { type JsonPath, treeOf } from '../archives/json-trees.ts'
import { Spool } from '../archives/spools.ts'
import type { Conversions } from '../documents/conversions.ts'
import { tableName } from '../documents/names.ts'
import type { DefectiveDocument, SourceDocument, SourceValue } from '../documents/source-values.ts'
import type { Progress, SourceCollection } from '../source.ts'
import { pathRecord, readPathRecord } from './path-records.ts'
import { ANY, agrees, type TablePath, tablePathOf } from './table-paths.ts'

/** The name that the documentation gives the file, or the one that the console gives it. */
const NAME = /^(?:database|[^/]+-export)\.json$/
/** Keys of the database have no `$`, so that no document has this one. */
const PARENT = '$parent'
const VALUE = 'value'
const NULL = Buffer.from('null')
const NEXT = 'Name the path whose children are documents, such as `--table messages/*`.'

/** Returns the name of the file, or null. Throws CLIENT_EXPORT_INVALID for two of them. */
export function realtimeFile({ names }: ExportFiles): string | null {
  const [found, second] = names.filter((name) => NAME.test(name))
  if (second === undefined) return found ?? null
  throw exportInvalid(`${found} and ${second} are both exports of a Realtime Database.`)
}

export interface RealtimeExport {
  readonly spool: Spool
  /** Tables by their names in the spool. */
  readonly paths: ReadonlyMap<string, TablePath>
  /** Values outside of the tables, with the path of the first one. */
  readonly outside: { readonly count: number; readonly first: string }
}

/** Reads the file; the tables replace those of its top level. Throws CLIENT_EXPORT_INVALID. */
export async function openRealtime(
  files: ExportFiles,
  { name, tables }: { readonly name: string; readonly tables: readonly TablePath[] },
  progress: Progress,
): Promise<RealtimeExport> {
  const spool = new Spool()
  try {
    const paths = new Map<string, TablePath>()
    const outside = { count: 0, first: '' }
    const reading = {
      descends: (path: JsonPath) => isAbove(path, tables),
      nextIfTooLong: NEXT,
    }
    progress.step(`reading ${name}`)
    for await (const { path, value } of treeOf(name, () => files.read(name), reading)) {
      progress.check()
      // The console writes null for a missing index of a list.
      if (value === null || NULL.equals(value)) continue
      if (path.some((key) => key.includes('/'))) throw exportInvalid(`${name} has a key with "/".`)
      const table = tableOf(path, tables)
      if (table === null) {
        outside.count += 1
        if (outside.count === 1) outside.first = path.join('/')
      } else {
        paths.set(table.text, table)
        spool.add(table.text, pathRecord(path, value))
      }
    }
    const missing = tables.find(({ text }) => !paths.has(text))
    if (missing !== undefined) {
      throw exportInvalid(
        `${name} has no document at ${missing.text}.`,
        explanation({ next: 'Name a path that has children, or leave out --table.' }),
      )
    }
    spool.flush()
    return { spool, paths, outside }
  } catch (error) {
    spool.remove()
    throw error
  }
}

/** Returns the tables that replace the top level of the path. */
function replacing(path: JsonPath, tables: readonly TablePath[]): readonly TablePath[] {
  return tables.filter((table) => path.length > 0 && agrees(path.slice(0, 1), table))
}

/** Returns whether the path is a table, or has tables below it. */
function isAbove(path: JsonPath, tables: readonly TablePath[]): boolean {
  const own = replacing(path, tables)
  if (own.length === 0) return path.length <= 1
  return own.some((table) => path.length <= table.keys.length && agrees(path, table))
}

/** Returns the table that the value is a document of, or null. */
function tableOf(path: JsonPath, tables: readonly TablePath[]): TablePath | null {
  // Priorities stand beside the children.
  if (path.length === 0 || path.at(-1)!.startsWith('.')) return null
  const own = replacing(path, tables)
  if (own.length === 0) return path.length === 2 ? tablePathOf([path[0]!]) : null
  return own.find((table) => path.length === table.keys.length + 1 && agrees(path, table)) ?? null
}

/** Returns the collections in the order of their paths. `taken` has the names of tables. */
export function realtimeCollections(
  { spool, paths }: RealtimeExport,
  conversions: Conversions,
  taken: Set<string>,
): readonly SourceCollection[] {
  return [...spool.names].sort().map((text) => {
    const path = paths.get(text)!
    const name = `Realtime Database: ${text}`
    const hasParent = path.keys.includes(ANY)
    return {
      name,
      table: tableName(path.keys.filter((key) => key !== ANY).join('/'), taken),
      indexes: hasParent ? [{ name: 'byParent', fields: [PARENT], unique: false }] : [],
      nextIfTooWide: NEXT,
      declare: () => {},
      async *documents() {
        conversions.begin(name)
        for await (const record of spool.read(text)) yield documentOf(record, path, conversions)
      },
    }
  })
}

function documentOf(
  record: Uint8Array,
  { keys }: TablePath,
  conversions: Conversions,
): SourceDocument | DefectiveDocument {
  const { path, content, raw } = readPathRecord(record)
  try {
    const value = sourceValue(parseStrictJson(content, ROUNDED))
    const isObject = value instanceof Map
    if (!isObject) conversions.add(`children that are no objects to the field ${VALUE}`)
    const fields = new Map<string, SourceValue>(isObject ? value : [[VALUE, value]])
    const parents = path.filter((_, i) => keys[i] === ANY)
    if (parents.length > 0) fields.set(PARENT, parents.join('/'))
    return { id: [...parents, path.at(-1)!].join('/'), fields, raw }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return { defect: `Expected ${error.rule}.`, raw }
  }
}

function sourceValue(json: Json): SourceValue {
  if (Array.isArray(json)) return json.map(sourceValue)
  // JSON has -0, which no value here has.
  if (!isJsonObject(json)) return json === 0 ? 0 : json
  return new Map(Object.entries(json).map(([key, value]) => [key, sourceValue(value)]))
}
