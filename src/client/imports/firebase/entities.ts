/**
 * Documents of Cloud Firestore in its managed export: each is an `EntityProto` of Datastore, with a
 * path, and properties of which one that is `multiple` is an item of a list.
 */
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp, VALUE_DEPTH_MAX } from '../../../value/values.ts'
import type { SourceValue } from '../documents/source-values.ts'
import { type Message, type ProtobufValue, parseMessage } from './protobuf.ts'

/** Names of collections and IDs of documents in turn. */
export interface DocumentPath {
  /** The project and the database. */
  readonly database: string
  readonly names: readonly string[]
}

export interface EntityReading {
  readonly reference: (path: DocumentPath) => SourceValue
  readonly onConversion: (what: string) => void
}

const KEY = 13
const PROPERTIES = [14, 15] as const
const APP = 13
const PATH = 14
const NAMESPACE = 20
const DATABASE = 23
const PATH_ELEMENT = 1
/** Fields of the parts of a path, in a key and in a value. */
const KEY_PART = { kind: 2, id: 3, name: 4 } as const
const VALUE_PART = { kind: 15, id: 16, name: 17 } as const
/** Meanings of a property, which tell apart what has one form. */
const WHEN = 7n
const BLOB = 14n
const BYTE_STRING = 16n
const ENTITY = 19n
const EMPTY_LIST = 24n
const VECTOR = '__vector__'

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads the path of an entity. Throws ValidationError. */
export function pathOf(entity: Message): DocumentPath {
  const key = message(entity.get(KEY)?.[0])
  return documentPath(key, message(key.get(PATH)?.[0]).get(PATH_ELEMENT), KEY_PART)
}

/** Reads the fields of an entity. Throws ValidationError. */
export function fieldsOf(
  entity: Message,
  reading: EntityReading,
  depth = 0,
): ReadonlyMap<string, SourceValue> {
  if (depth > VALUE_DEPTH_MAX) throw new ValidationError(`at most ${VALUE_DEPTH_MAX} levels`)
  const fields = new Map<string, SourceValue>()
  const lists = new Map<string, { readonly items: SourceValue[]; readonly number: number }>()
  for (const number of PROPERTIES) {
    for (const each of entity.get(number) ?? []) {
      const property = message(each)
      const name = text(property.get(3)?.[0])
      if (depth > 0 && name === '__proto__') throw new ValidationError('no key __proto__')
      const list = lists.get(name)
      const isMultiple = property.get(4)?.[0] === 1n
      if (fields.has(name) && !(isMultiple && list !== undefined)) {
        throw new ValidationError('each field once')
      }
      const value = propertyValue(property, reading, depth)
      if (!isMultiple) fields.set(name, value)
      else if (list !== undefined) {
        if (list.number !== number) {
          reading.onConversion(
            'items of lists that the export has in two parts: the unindexed items come last',
          )
        }
        list.items.push(value)
      } else {
        const items = [value]
        lists.set(name, { items, number })
        fields.set(name, items)
      }
    }
  }
  return fields
}

function propertyValue(property: Message, reading: EntityReading, depth: number): SourceValue {
  const meaning = property.get(1)?.[0]
  if (meaning === EMPTY_LIST) return []
  const value = message(property.get(5)?.[0])
  if (value.size > 1) throw new ValidationError('one value for each property')
  const [[kind, [content]] = [0, [undefined]]] = [...value]
  switch (kind) {
    case 0:
      return null
    case 1:
      return integer(BigInt.asIntN(64, varint(content)), meaning === WHEN)
    case 2:
      return varint(content) === 1n
    case 3:
      return textValue(bytes(content), meaning, reading, depth)
    case 4:
      return float(double(content), reading)
    case 5:
      return new Map([
        ['latitude', double(message(content).get(6)?.[0])],
        ['longitude', double(message(content).get(7)?.[0])],
      ])
    case 12: {
      const reference = message(content)
      return reading.reference(documentPath(reference, reference.get(14), VALUE_PART))
    }
    default:
      throw new ValidationError('a value of Firestore')
  }
}

/** JavaScript has one type of numbers: an integer that it represents is a float64. */
function integer(value: bigint, isTime: boolean): SourceValue {
  if (isTime) return new Timestamp(value)
  return Number.isSafeInteger(Number(value)) ? Number(value) : value
}

function float(value: number, reading: EntityReading): SourceValue {
  if (Number.isFinite(value)) return value === 0 ? 0 : value
  reading.onConversion('numbers that are not finite to texts')
  return String(value)
}

function textValue(
  content: Uint8Array,
  meaning: ProtobufValue | undefined,
  reading: EntityReading,
  depth: number,
): SourceValue {
  if (meaning === BLOB || meaning === BYTE_STRING) return new Uint8Array(content)
  if (meaning !== ENTITY) return text(content)
  const fields = fieldsOf(parseMessage(content), reading, depth + 1)
  if (fields.get('__type__') !== VECTOR) return fields
  const numbers = fields.get('value')
  if (!Array.isArray(numbers)) throw new ValidationError('a vector')
  reading.onConversion('vectors to lists of numbers')
  return numbers
}

function documentPath(
  key: Message,
  parts: readonly ProtobufValue[] | undefined,
  numbers: typeof KEY_PART | typeof VALUE_PART,
): DocumentPath {
  const database = [APP, NAMESPACE, DATABASE].map((number) => {
    const found = key.get(number)?.[0]
    return found === undefined ? '' : text(found)
  })
  const names = (parts ?? []).flatMap((each) => {
    const part = message(each)
    const id = part.get(numbers.id)?.[0]
    // Firestore writes a number of Datastore in this way.
    const name = id === undefined ? text(part.get(numbers.name)?.[0]) : `__id${varint(id)}__`
    return [text(part.get(numbers.kind)?.[0]), name]
  })
  if (names.length === 0) throw new ValidationError('a path')
  return { database: database.join('\n'), names }
}

function message(value: ProtobufValue | undefined): Message {
  if (value instanceof Map) return value
  return parseMessage(bytes(value))
}

function bytes(value: ProtobufValue | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new ValidationError('an entity of Datastore')
}

function varint(value: ProtobufValue | undefined): bigint {
  if (typeof value === 'bigint') return value
  throw new ValidationError('an entity of Datastore')
}

function double(value: ProtobufValue | undefined): number {
  const content = bytes(value)
  if (content.length !== 8) throw new ValidationError('8 bytes')
  return Buffer.from(content).readDoubleLE(0)
}

function text(value: ProtobufValue | undefined): string {
  try {
    return decoder.decode(bytes(value))
  } catch (error) {
    if (error instanceof ValidationError) throw error
    throw new ValidationError('UTF-8 text')
  }
}
