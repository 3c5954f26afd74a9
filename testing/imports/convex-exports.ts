/**
 * Snapshot exports of Convex for tests. They are written by the rules of its exporter: int64, bytes
 * and infinite numbers are texts, and the shape of the table or the context of a document says so.
 */
import { createHash } from 'node:crypto'
import { encodeConvexId } from '../../src/client/imports/convex/convex-ids.ts'
import type { Json } from '../../src/value/strict-json.ts'
import { type ZipFile, zipOf } from './zip-writer.ts'

export type ConvexValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly ConvexValue[]
  | { readonly [key: string]: ConvexValue }

export interface ConvexTable {
  readonly name: string
  readonly number: number
  /** The inferred type, as `generated_schema.jsonl` has it. */
  readonly shape: string
  /** True if every document has its context, as where the shape decides nothing. */
  readonly hasContexts?: boolean
  readonly documents: readonly (readonly [id: string, fields: Record<string, ConvexValue>])[]
}

export interface ConvexFile {
  readonly id: string
  readonly contentType: string
  readonly content: string
}

export const STORAGE_NUMBER = 10_900

/** Returns the ID of document number `i` of a table. */
export function convexId(table: number, i: number): string {
  return encodeConvexId(
    table,
    createHash('sha256').update(`${table}/${i}`).digest().subarray(0, 16),
  )
}

/** Converts a value as the exporter does. */
export function cleanJson(value: ConvexValue): Json {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map(cleanJson)
  if (typeof value !== 'object' || value === null) return value as Json
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cleanJson(item)]))
}

/** Returns the context of a value of which the shape says nothing. */
export function contextOf(value: ConvexValue): Json {
  if (typeof value === 'bigint') return 'int64'
  if (value instanceof Uint8Array) return 'bytes'
  if (typeof value === 'number' && Number.isNaN(value)) return { $float64NaN: 'AAAAAAAA+H8=' }
  if (typeof value === 'number' && !Number.isFinite(value)) return 'float64inf'
  if (Array.isArray(value)) {
    const items = value.map(contextOf)
    return items.every((item) => item === 'infer') ? 'infer' : items
  }
  if (typeof value !== 'object' || value === null) return 'infer'
  const entries = Object.entries(value)
    .map(([key, item]) => [key, contextOf(item)] as const)
    .filter(([, context]) => context !== 'infer')
  return entries.length === 0 ? 'infer' : Object.fromEntries(entries)
}

/** Returns the lines of `documents.jsonl`. */
export function convexLines(table: ConvexTable): string {
  return table.documents
    .map(([_id, fields]) => `${JSON.stringify({ ...(cleanJson(fields) as object), _id })}\n`)
    .join('')
}

function schemaLines({ shape, documents, hasContexts = false }: ConvexTable): string {
  const contexts = hasContexts
    ? documents.flatMap(([id, fields]) => {
        const context = contextOf(fields)
        return context === 'infer' ? [] : [{ [id]: context }]
      })
    : []
  return [shape, ...contexts].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** Returns an archive in the order in which the exporter writes its files. */
export function convexExport(
  tables: readonly ConvexTable[],
  files: readonly ConvexFile[] | null = null,
): Uint8Array {
  const entries: ZipFile[] = [{ name: 'README.md', content: '# Welcome\n' }]
  const numbered = tables.map(({ name, number }) => `${JSON.stringify({ name, id: number })}\n`)
  entries.push({ name: '_tables/documents.jsonl', content: numbered.join('') })
  for (const table of tables) {
    entries.push({ name: `${table.name}/generated_schema.jsonl`, content: schemaLines(table) })
    entries.push({ name: `${table.name}/documents.jsonl`, content: convexLines(table) })
  }
  if (files !== null) {
    const metadata = files.map(({ id, contentType, content }) => {
      const sha256 = createHash('sha256').update(content).digest('base64')
      const size = String(content.length)
      return `${JSON.stringify({ _id: id, _creationTime: 1, contentType, sha256, size })}\n`
    })
    entries.push({ name: '_storage/documents.jsonl', content: metadata.join('') })
    for (const { id, content } of files) entries.push({ name: `_storage/${id}.txt`, content })
  }
  return zipOf(entries)
}
