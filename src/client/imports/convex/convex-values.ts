/**
 * Values of a Convex export. A document is plain JSON; the shape of its table says which texts are
 * int64, bytes or infinite numbers, and a context of the document says it where the shape does not.
 * Values in the tagged form of the wire, such as `{"$integer":"..."}`, are read as well.
 */
import { isJsonObject, type Json } from '../../../value/strict-json.ts'
import { parseInt64 } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { SourceValue } from '../documents/source-values.ts'
import {
  type Alternatives,
  fieldShapes,
  itemShapes,
  type TextKind,
  textKindOf,
} from './convex-shapes.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export interface ConvexReading {
  /** Returns a reference for a text that is an ID; the text otherwise. */
  readonly text: (text: string) => SourceValue
  /** Called for each value that becomes another one. */
  readonly onConversion: (what: string) => void
}

/** Reads a value. `context` is undefined where the shape decides. Throws ValidationError. */
export function readConvex(
  json: Json,
  shapes: Alternatives,
  context: Json | undefined,
  reading: ConvexReading,
): SourceValue {
  if (context === 'set' || context === 'map') return readTagged(json, shapes, reading)
  if (typeof json === 'string') return readText(json, shapes, context, reading)
  if (typeof json === 'number') {
    if (Object.is(json, -0)) reading.onConversion('negative zeros to zero')
    return json === 0 ? 0 : json
  }
  if (Array.isArray(json)) {
    const inner = itemShapes(shapes)
    return json.map((item, i) => {
      return readConvex(item, inner, Array.isArray(context) ? context[i] : undefined, reading)
    })
  }
  if (!isJsonObject(json)) return json
  const [key] = Object.keys(json)
  if (key?.startsWith('$') && Object.keys(json).length === 1) {
    return readTagged(json, shapes, reading)
  }
  const contexts = isJsonObject(context) ? context : {}
  return new Map(
    Object.entries(json).map(([name, item]) => {
      const own = Object.hasOwn(contexts, name) ? contexts[name] : undefined
      return [name, readConvex(item, fieldShapes(shapes, name), own, reading)]
    }),
  )
}

function readText(
  text: string,
  shapes: Alternatives,
  context: Json | undefined,
  reading: ConvexReading,
): SourceValue {
  switch (kindOf(context) ?? textKindOf(shapes) ?? 'string') {
    case 'int64':
      return parseInt64(text)
    case 'bytes':
      return base64(text)
    case 'infinite':
    case 'nan':
      return notFinite(Number(text), reading)
    case 'string':
      return reading.text(text)
  }
}

/** Returns what a context says; null if it leaves the decision to the shape. */
function kindOf(context: Json | undefined): TextKind | null {
  if (context === undefined || context === 'infer') return null
  if (context === 'int64' || context === 'bytes') return context
  if (context === 'float64inf') return 'infinite'
  if (isJsonObject(context) && '$float64NaN' in context) return 'nan'
  throw new ValidationError('a known context')
}

function readTagged(json: Json, shapes: Alternatives, reading: ConvexReading): SourceValue {
  const [[tag, content] = ['', null]] = isJsonObject(json) ? Object.entries(json) : []
  const inner = (item: Json) => readConvex(item, shapes, undefined, reading)
  if (typeof content === 'string') {
    if (tag === '$bytes' || tag === '$binary') return base64(content)
    if (tag === '$integer') return eightBytes(content).getBigInt64(0, true)
    if (tag === '$float') {
      const number = eightBytes(content).getFloat64(0, true)
      if (Number.isFinite(number)) return readConvex(number, shapes, undefined, reading)
      return notFinite(number, reading)
    }
  }
  if ((tag === '$set' || tag === '$map') && Array.isArray(content)) {
    reading.onConversion(`${tag.slice(1)}s to lists`)
    return content.map(inner)
  }
  throw new ValidationError('a value of Convex')
}

/** A float64 is finite here, so the name of the number is stored. */
function notFinite(number: number, reading: ConvexReading): string {
  if (Number.isFinite(number)) throw new ValidationError('an infinite number or NaN')
  reading.onConversion('numbers that are not finite to texts')
  return String(number)
}

function base64(text: string): Uint8Array {
  if (!BASE64.test(text)) throw new ValidationError('base64')
  return new Uint8Array(Buffer.from(text, 'base64'))
}

function eightBytes(text: string): DataView {
  const bytes = base64(text)
  if (bytes.length !== 8) throw new ValidationError('8 bytes')
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
