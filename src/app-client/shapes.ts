/**
 * Shapes: validators in the compact form of `_generated/api.ts`, which determine the wire type of a
 * JavaScript value. They have no bounds, since the server checks those anyway.
 */
import { encodeBase64Url } from '../value/base64url.ts'
import { floatBits, isTypedId } from '../value/tagged.ts'
import type { LiteralJson } from '../value/validators.ts'
import {
  compareUtf8,
  INT64_MAX,
  INT64_MIN,
  VALUE_DEPTH_MAX,
  VALUE_ENTRIES_MAX,
} from '../value/values.ts'
import { type CallError, clientError, isCallError } from './errors.ts'

export type Shape =
  | 'null'
  | 'boolean'
  | 'int64'
  | 'float64'
  | 'string'
  | 'bytes'
  | 'timestamp'
  | 'any'
  /** An ID of the table. */
  | `id:${string}`
  | { readonly array: Shape }
  | { readonly record: Shape }
  | { readonly object: Shapes }
  | { readonly union: readonly Shape[] }
  | { readonly literal: LiteralJson }
/** Fields of an object. Only here is `optional` allowed. */
export type Shapes = { readonly [name: string]: Shape | { readonly optional: Shape } }

/** An ID or a timestamp as an argument that the Function declares with `v.any()`. */
export class TaggedArgument {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Marks a text as an ID, for arguments that the Function declares with `v.any()`. */
export function taggedId(id: string): TaggedArgument {
  return new TaggedArgument(scalar('id:', id, 'id'))
}

/** Marks microseconds since the Unix epoch as a timestamp, for arguments declared `v.any()`. */
export function taggedTimestamp(micros: bigint): TaggedArgument {
  return new TaggedArgument(scalar('timestamp', micros, 'micros'))
}

/**
 * Returns the canonical text of the arguments of a call (contract/application.md, Canonical tagged
 * values). Throws ARGUMENTS_INVALID with the path of the first defect.
 */
export function encodeArguments(shapes: Shapes, args: unknown): string {
  return encodeFields(shapes, args ?? {}, 'arguments', 0)
}

function invalid(path: string, rule: string): CallError {
  return clientError('ARGUMENTS_INVALID', `${path} is not ${rule}.`)
}

function encode(shape: Shape, value: unknown, path: string, depth: number): string {
  if (typeof shape === 'string') {
    return shape === 'any' ? encodeAny(value, path, depth) : scalar(shape, value, path)
  }
  if ('object' in shape) return encodeFields(shape.object, value, path, depth)
  if ('literal' in shape) return encodeLiteral(shape.literal, value, path)
  if ('union' in shape) return encodeUnion(shape.union, value, path, depth)
  return 'array' in shape
    ? encodeArray(shape.array, value, path, depth)
    : encodeRecord(shape.record, value, path, depth)
}

function scalar(shape: string, value: unknown, path: string): string {
  switch (shape) {
    case 'null':
      if (value === null) return '{"type":"null"}'
      break
    case 'boolean':
      if (typeof value === 'boolean') return `{"type":"boolean","value":${value}}`
      break
    case 'int64':
    case 'timestamp':
      if (typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX) {
        return `{"type":"${shape}","value":"${value}"}`
      }
      throw invalid(path, `an ${shape}, which is a bigint such as 5n`)
    case 'float64':
      if (typeof value === 'number' && Number.isFinite(value)) {
        return `{"type":"float64","value":"${floatBits(value)}"}`
      }
      throw invalid(path, 'a finite number')
    case 'string':
      // With the flag u only surrogates without their other half match.
      if (typeof value === 'string' && !/[\ud800-\udfff]/u.test(value)) {
        return `{"type":"string","value":${JSON.stringify(value)}}`
      }
      throw invalid(path, 'a string without lone surrogates')
    case 'bytes':
      if (value instanceof Uint8Array) {
        return `{"type":"bytes","value":"${encodeBase64Url(value)}"}`
      }
      throw invalid(path, 'a Uint8Array')
    default: {
      const table = shape.slice(3)
      const prefix = table === 'files' ? 'fil' : table
      if (typeof value === 'string' && isTypedId(value)) {
        if (table === '' || value.slice(0, -27) === prefix) {
          return `{"type":"typed_id","value":"${value}"}`
        }
      }
      throw invalid(path, table === '' ? 'an ID' : `an ID of the table ${table}`)
    }
  }
  throw invalid(path, `a ${shape}`)
}

function encodeAny(value: unknown, path: string, depth: number): string {
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return scalar(typeof value, value, path)
    case 'bigint':
      return scalar('int64', value, path)
    case 'number':
      return scalar('float64', value, path)
    case 'object':
      if (value === null) return scalar('null', value, path)
      if (value instanceof TaggedArgument) return value.text
      if (value instanceof Uint8Array) return scalar('bytes', value, path)
      return Array.isArray(value)
        ? encodeArray('any', value, path, depth)
        : encodeRecord('any', value, path, depth)
    default:
      throw invalid(path, 'a value that can be sent')
  }
}

function encodeLiteral(literal: LiteralJson, value: unknown, path: string): string {
  const type = 'string' in literal ? 'string' : 'boolean' in literal ? 'boolean' : 'int64'
  const expected = 'int64' in literal ? BigInt(literal.int64) : Object.values(literal)[0]
  if (value !== expected) throw invalid(path, `the literal ${expected}`)
  return scalar(type, value, path)
}

/** Applies the first member that accepts the value, as the server does. */
function encodeUnion(
  members: readonly Shape[],
  value: unknown,
  path: string,
  depth: number,
): string {
  for (const member of members) {
    try {
      return encode(member, value, path, depth)
    } catch (error) {
      if (!isCallError(error)) throw error
    }
  }
  throw invalid(path, 'a member of the union')
}

function encodeArray(items: Shape, value: unknown, path: string, depth: number): string {
  if (!Array.isArray(value)) throw invalid(path, 'an array')
  enter(value.length, path, depth)
  const texts = value.map((item, i) => encode(items, item, `${path}[${i}]`, depth + 1))
  return `{"type":"array","value":[${texts.join()}]}`
}

function encodeRecord(values: Shape, value: unknown, path: string, depth: number): string {
  const entries = entriesOf(value, path)
  return objectText(
    entries.map(([key, item]) => [key, encode(values, item, `${path}.${key}`, depth + 1)]),
    path,
    depth,
  )
}

function encodeFields(shapes: Shapes, value: unknown, path: string, depth: number): string {
  const entries = entriesOf(value, path)
  const texts = entries.map(([key, item]): [string, string] => {
    const shape = Object.hasOwn(shapes, key) ? shapes[key]! : null
    if (shape === null) throw invalid(`${path}.${key}`, 'a declared field')
    const isOptional = typeof shape === 'object' && 'optional' in shape
    return [key, encode(isOptional ? shape.optional : shape, item, `${path}.${key}`, depth + 1)]
  })
  const given = new Set(entries.map(([key]) => key))
  for (const [key, shape] of Object.entries(shapes)) {
    const isOptional = typeof shape === 'object' && 'optional' in shape
    if (!isOptional && !given.has(key)) throw invalid(`${path}.${key}`, 'given')
  }
  return objectText(texts, path, depth)
}

/** Returns the members of a plain object. One that is undefined counts as absent. */
function entriesOf(value: unknown, path: string): [string, unknown][] {
  const prototype = typeof value === 'object' && value !== null && Object.getPrototypeOf(value)
  // An object of another realm has another Object.prototype, whose own prototype is null.
  const isPlain = prototype === null || (prototype && Object.getPrototypeOf(prototype) === null)
  if (!isPlain) throw invalid(path, 'a plain object')
  return Object.entries(value as object).filter(([, item]) => item !== undefined)
}

function objectText(entries: [string, string][], path: string, depth: number): string {
  enter(entries.length, path, depth)
  entries.sort(([a], [b]) => compareUtf8(a, b))
  const texts = entries.map(([key, text]) => {
    if (key === '__proto__') throw invalid(`${path}.${key}`, 'an allowed key')
    scalar('string', key, `${path}.${key}`)
    return `{"key":${JSON.stringify(key)},"value":${text}}`
  })
  return `{"type":"object","value":[${texts.join()}]}`
}

function enter(entries: number, path: string, depth: number): void {
  if (depth >= VALUE_DEPTH_MAX) throw invalid(path, `at most ${VALUE_DEPTH_MAX} levels deep`)
  if (entries > VALUE_ENTRIES_MAX) throw invalid(path, `at most ${VALUE_ENTRIES_MAX} entries long`)
}
