/** Physical indexes as both stores keep them, dropped ones too until their entries are gone. */
import { assert } from '../errors/assert.ts'
import { decodeStored } from '../value/stored.ts'
import type { ValueObject } from '../value/values.ts'
import { encodeTrailer, encodeValue, KEY_BYTES_MAX } from './key-encoding.ts'
import type { IndexDefinition, PhysicalIndex } from './store.ts'

export interface IndexRow extends IndexDefinition {
  readonly id: number
  readonly state: 'building' | 'ready' | 'dropped'
  /** Null unless ready. */
  readonly readySequence: number | null
}

/** The index of this definition that is not dropped. */
export function findIndex(
  indexes: Iterable<IndexRow>,
  { table, fields }: IndexDefinition,
): IndexRow | undefined {
  const wanted = JSON.stringify(fields)
  for (const index of indexes) {
    const same = index.table === table && JSON.stringify(index.fields) === wanted
    if (same && index.state !== 'dropped') return index
  }
  return undefined
}

/** What commits have to keep of it; null once it is dropped. */
export function visible({ id, table, fields, state }: IndexRow): PhysicalIndex | null {
  return state === 'dropped' ? null : { id, table, fields, state }
}

/** The key of a stored document, a binary string; null where it is too long to be kept. */
export function storedKey(
  index: IndexDefinition,
  document: { readonly id: string; readonly createdAtMicros: bigint; readonly text: string },
): string | null {
  const fields = decodeStored(document.text)
  assert(fields instanceof Map, 'a document is not an object')
  let key = ''
  for (const field of index.fields) key += encodeValue((fields as ValueObject).get(field))
  key += encodeTrailer(document)
  return key.length > KEY_BYTES_MAX ? null : key
}

/** The range of the IDs of a table: "<table>_<ULID>", and "`" is the character after "_". */
export function idsOfTable(table: string): { readonly after: string; readonly before: string } {
  return { after: `${table}_`, before: `${table}\`` }
}
