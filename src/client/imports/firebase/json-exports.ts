/**
 * Documents of Cloud Firestore as JSON, as community tools write it: collections and documents
 * stand below `__collections__` in turn, and what JSON lacks is an object with `__datatype__`.
 */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseStrictJson,
  ROUNDED,
} from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import { exportInvalid } from '../archives/export-fault.ts'
import type { ExportFiles } from '../archives/export-files.ts'
import { type JsonPath, treeOf } from '../archives/json-trees.ts'
import { Spool } from '../archives/spools.ts'
import type { SourceValue } from '../documents/source-values.ts'
import type { Progress } from '../source.ts'
import type { EntityReading } from './entities.ts'
import { collectionName, type FirestoreExport } from './firestore.ts'
import { pathRecord, readPathRecord } from './path-records.ts'

export const FIRESTORE = 'firestore.json'
const COLLECTIONS = '__collections__'
const DATATYPE = '__datatype__'
/** A path has `__collections__`, a collection and a document for each level. */
const LEVEL = 3
/** Fields that wait for the end of their documents, while subcollections are read. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
/** Memory that a field has beside its bytes. */
const OVERHEAD_BYTES = 256
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Reads the file. Throws CLIENT_EXPORT_INVALID. */
export async function openJsonExport(
  files: ExportFiles,
  progress: Progress,
): Promise<FirestoreExport> {
  const spool = new Spool()
  try {
    const documents = new PendingDocuments()
    const content = () => files.read(FIRESTORE)
    // A document whose fields repeat a key is left out alone, when it is decoded.
    const isUnique = (path: JsonPath) => isContainer(path, false)
    const reading = { descends: isContainer, isUnique, nextIfTooLong: null }
    progress.step(`reading ${FIRESTORE}`)
    let hasCollections = false
    for await (const { path, value } of treeOf(FIRESTORE, content, reading)) {
      progress.check()
      if (value !== null) documents.add(path, value)
      else if (path.length === 1) hasCollections = true
      else if (path.length % LEVEL === 0 && path.length > 0) {
        const names = path.filter((_, i) => i % LEVEL !== 0)
        spool.add(collectionName(names), pathRecord(names, documents.take(path.length)))
      }
    }
    if (!hasCollections) throw notExported(`no ${COLLECTIONS} at its top`)
    spool.flush()
    return { spool, database: '', decode }
  } catch (error) {
    spool.remove()
    throw error
  }
}

/** Collections and documents are read member by member, their fields as a whole. */
function isContainer(path: JsonPath, isList: boolean): boolean {
  return !isList && (path.length % LEVEL !== 1 || path.at(-1) === COLLECTIONS)
}

/** The fields of the documents that have begun: one document for each level. */
class PendingDocuments {
  readonly #fields = new Map<number, Uint8Array[]>()
  #bytes = 0

  add(path: JsonPath, value: Uint8Array): void {
    const key = path.at(-1)
    if (path.length % LEVEL !== 1 || key === COLLECTIONS) {
      throw notExported(`something else than an object at ${path.join('/').slice(0, 300)}`)
    }
    if (path.length === 1) throw notExported(`fields at its top, such as ${key!.slice(0, 100)}`)
    const depth = path.length - 1
    const member = Buffer.concat([Buffer.from(`${JSON.stringify(key)}:`), value])
    const fields = this.#fields.get(depth)
    if (fields === undefined) this.#fields.set(depth, [member])
    else fields.push(member)
    this.#bytes += member.length + OVERHEAD_BYTES
    if (this.#bytes > PENDING_BYTES_MAX) {
      throw exportInvalid(`The document ${path.slice(0, -1).join('/').slice(0, 300)} is too large.`)
    }
  }

  /** Returns the document whose path has this length as JSON, and forgets it. */
  take(depth: number): Uint8Array {
    const fields = this.#fields.get(depth) ?? []
    this.#fields.delete(depth)
    const parts: Uint8Array[] = [Buffer.from('{')]
    fields.forEach((field, i) => {
      if (i > 0) parts.push(Buffer.from(','))
      parts.push(field)
      this.#bytes -= field.length + OVERHEAD_BYTES
    })
    parts.push(Buffer.from('}'))
    return Buffer.concat(parts)
  }
}

function notExported(what: string) {
  return exportInvalid(`${FIRESTORE} is no export of the whole database: it has ${what}.`)
}

const decode: FirestoreExport['decode'] = (record) => {
  const { path: names, content, raw } = readPathRecord(record)
  return {
    names,
    raw,
    fields(reading) {
      const json = parseStrictJson(content, ROUNDED)
      if (!isJsonObject(json)) throw new ValidationError('an object')
      return mapOf(json, reading)
    },
  }
}

function mapOf(json: JsonObject, reading: EntityReading): ReadonlyMap<string, SourceValue> {
  return new Map(Object.entries(json).map(([key, value]) => [key, sourceValue(value, reading)]))
}

function sourceValue(json: Json, reading: EntityReading): SourceValue {
  if (Array.isArray(json)) return json.map((each) => sourceValue(each, reading))
  // JSON has -0, which no value here has.
  if (!isJsonObject(json)) return json === 0 ? 0 : json
  return Object.hasOwn(json, DATATYPE) ? typedValue(json, reading) : mapOf(json, reading)
}

function typedValue({ [DATATYPE]: type, value }: JsonObject, reading: EntityReading): SourceValue {
  if (type === 'timestamp' && isJsonObject(value)) {
    const { _seconds: seconds, _nanoseconds: nanoseconds } = value
    if (isInteger(seconds) && isInteger(nanoseconds)) {
      return new Timestamp(BigInt(seconds) * 1_000_000n + BigInt(Math.floor(nanoseconds / 1_000)))
    }
  }
  if (type === 'geopoint' && isJsonObject(value)) {
    const { _latitude: latitude, _longitude: longitude } = value
    if (typeof latitude === 'number' && typeof longitude === 'number') {
      return new Map([
        ['latitude', latitude],
        ['longitude', longitude],
      ])
    }
  }
  if (type === 'documentReference' && typeof value === 'string') {
    const names = value.split('/')
    if (names.length % 2 === 0 && !names.includes('')) {
      return reading.reference({ database: '', names })
    }
  }
  if (type === 'bytes' && typeof value === 'string' && BASE64.test(value)) {
    return new Uint8Array(Buffer.from(value, 'base64'))
  }
  throw new ValidationError(`a known ${DATATYPE} with its value`)
}

function isInteger(json: Json | undefined): json is number {
  return Number.isSafeInteger(json)
}
