/**
 * Managed exports of Cloud Firestore for tests, by the log format of LevelDB (doc/log_format.md)
 * and the messages of Datastore (`entity_bytes.proto`). The fixture of the emulator proves the
 * reader; these are for random and hostile documents.
 */
import { maskedChecksum } from '../../src/client/imports/firebase/log-records.ts'
import type { ZipFile } from './zip-writer.ts'

export type FirestoreValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly FirestoreValue[]
  | ReadonlyMap<string, FirestoreValue>

/** The path, and the fields. */
export type FirestoreDocument = readonly [
  path: readonly string[],
  fields: ReadonlyMap<string, FirestoreValue>,
]

const BLOCK_BYTES = 32 * 1024
const HEAD_BYTES = 7

/** Returns a file with these records. */
export function logOf(records: readonly Uint8Array[]): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (const record of records) {
    let from = 0
    let isFirst = true
    for (let isWhole = false; !isWhole; ) {
      const room = BLOCK_BYTES - (at % BLOCK_BYTES)
      if (room < HEAD_BYTES) {
        parts.push(Buffer.alloc(room))
        at += room
        continue
      }
      const piece = record.subarray(from, from + room - HEAD_BYTES)
      isWhole = from + piece.length === record.length
      // A block with room for a head alone gets a first part without content.
      const type = isFirst ? (isWhole ? 1 : 2) : isWhole ? 4 : 3
      isFirst = false
      const body = Buffer.concat([Buffer.of(type), piece])
      const head = Buffer.alloc(6)
      head.writeUInt32LE(maskedChecksum(body), 0)
      head.writeUInt16LE(piece.length, 4)
      parts.push(head, body)
      at += HEAD_BYTES + piece.length
      from += piece.length
    }
  }
  return Buffer.concat(parts)
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

function field(number: number, content: string | Uint8Array): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

const whole = (number: number, value: number | bigint) =>
  Buffer.concat([varint(number * 8), varint(value)])
const group = (number: number, ...parts: Uint8Array[]) =>
  Buffer.concat([varint(number * 8 + 3), ...parts, varint(number * 8 + 4)])

/** Returns an `EntityProto`. */
export function entityOf(
  path: readonly string[],
  fields: ReadonlyMap<string, FirestoreValue>,
  app = 'demo',
): Buffer {
  const elements: Buffer[] = []
  for (let i = 0; i < path.length; i += 2) {
    elements.push(group(1, field(2, path[i]!), field(4, path[i + 1]!)))
  }
  const key = Buffer.concat([field(13, app), field(14, Buffer.concat(elements))])
  return Buffer.concat([field(13, key), ...propertiesOf(fields)])
}

function propertiesOf(fields: ReadonlyMap<string, FirestoreValue>): readonly Buffer[] {
  return [...fields].flatMap(([name, value]) => {
    if (!Array.isArray(value)) return [propertyOf(name, value as FirestoreValue, false)]
    if (value.length > 0) return value.map((item) => propertyOf(name, item, true))
    return [field(14, Buffer.concat([whole(1, 24), field(3, name), whole(4, 0), field(5, '')]))]
  })
}

/** `number` is 14 for an indexed property, or 15 as the emulator writes each of them. */
export function propertyOf(
  name: string,
  value: FirestoreValue,
  isMultiple: boolean,
  number: 14 | 15 = 15,
): Buffer {
  const [meaning, content] = contentOf(value)
  const head = meaning === 0 ? Buffer.alloc(0) : whole(1, meaning)
  const parts = [head, field(3, name), whole(4, isMultiple ? 1 : 0), field(5, content)]
  return field(number, Buffer.concat(parts))
}

function contentOf(value: FirestoreValue): readonly [meaning: number, content: Buffer] {
  if (value === null) return [0, Buffer.alloc(0)]
  if (typeof value === 'boolean') return [0, whole(2, value ? 1 : 0)]
  if (typeof value === 'string') return [0, field(3, value)]
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value)) return [0, whole(1, value)]
    const bytes = Buffer.alloc(9)
    bytes[0] = 4 * 8 + 1
    bytes.writeDoubleLE(value, 1)
    return [0, bytes]
  }
  if (value instanceof Uint8Array) return [14, field(3, value)]
  if (value instanceof Map) return [19, field(3, Buffer.concat(propertiesOf(value)))]
  throw new TypeError('a list inside a list')
}

/** Returns the files in the directories that Google Cloud gives them. */
export function firestoreExport(documents: readonly FirestoreDocument[]): readonly ZipFile[] {
  const directory = 'export/all_namespaces/all_kinds'
  const log = logOf(documents.map(([path, fields]) => entityOf(path, fields)))
  const metadata = Buffer.concat([field(1, ''), field(2, field(2, 'output-0'))])
  return [
    { name: 'export/export.overall_export_metadata', content: '' },
    { name: `${directory}/all_namespaces_all_kinds.export_metadata`, content: metadata },
    { name: `${directory}/output-0`, content: log },
  ]
}
