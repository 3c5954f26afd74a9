/** Values of Parse: JSON in which `__type` names dates, pointers, bytes, files and places. */
import { parseTimestamp } from '../../../value/plain.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import type { SourceValue } from '../documents/source-values.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export interface ParseReading {
  readonly pointer: (className: string, id: string) => SourceValue
  /** Returns null for a file whose bytes the export does not have. */
  readonly file: (name: string) => SourceValue | null
  readonly onConversion: (what: string) => void
}

/** Reads a value; undefined for a relation, whose members are elsewhere. */
export function readParse(json: Json, reading: ParseReading): SourceValue | undefined {
  if (typeof json === 'number') return json === 0 ? 0 : json
  if (Array.isArray(json)) return json.map((item) => readParse(item, reading) ?? null)
  if (!isJsonObject(json)) return json
  switch (json.__type) {
    case undefined:
      return fields(json, reading)
    case 'Date':
      return date(json.iso)
    case 'Pointer':
    case 'Object':
      return pointer(json, reading)
    case 'Relation':
      return undefined
    case 'Bytes':
      if (typeof json.base64 !== 'string' || !BASE64.test(json.base64)) throw invalid('bytes')
      return new Uint8Array(Buffer.from(json.base64, 'base64'))
    case 'File':
      return file(json, reading)
    case 'GeoPoint':
    case 'Polygon': {
      const { __type: _, ...place } = json
      return fields(place, reading)
    }
    default:
      throw invalid('a known __type')
  }
}

/** Reads a time, as an object of its own or as a text. */
export function date(iso: Json | undefined): Timestamp {
  const micros = typeof iso === 'string' ? parseTimestamp(iso) : null
  if (micros === null) throw invalid('a date')
  return new Timestamp(micros)
}

function fields(json: JsonObject, reading: ParseReading): SourceValue {
  const entries = Object.entries(json).flatMap(([name, item]) => {
    const value = readParse(item, reading)
    return value === undefined ? [] : [[name, value] as const]
  })
  return new Map(entries)
}

function pointer({ __type, className, objectId }: JsonObject, reading: ParseReading): SourceValue {
  if (typeof className !== 'string' || typeof objectId !== 'string') throw invalid('a pointer')
  // A query with `include` has the object in place of the pointer.
  if (__type === 'Object')
    reading.onConversion('objects that were included in others to references')
  return reading.pointer(className, objectId)
}

function file({ name, url }: JsonObject, reading: ParseReading): SourceValue {
  if (typeof name !== 'string') throw invalid('a file')
  const found = reading.file(name)
  if (found !== null) return found
  reading.onConversion('files that the export does not have to objects with name and url')
  return new Map([
    ['name', name],
    ['url', typeof url === 'string' ? url : null],
  ])
}

function invalid(rule: string): ValidationError {
  return new ValidationError(rule)
}
