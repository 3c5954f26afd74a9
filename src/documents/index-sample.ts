/** Compares a bounded sample of each index with the documents, in both directions. */

import { binaryString } from '../system/binary-strings.ts'
import { KEY_END } from './key-encoding.ts'
import { keySuccessor, storedKey } from './keys.ts'
import type { DocumentStore, KeyedDocument, PhysicalIndex } from './store.ts'

export interface IndexSampleOptions {
  /** Entries of each index that are read at each place, of which there are four. */
  readonly entriesMax: number
  /** Indexes that are read at most. */
  readonly indexesMax: number
  readonly randomBytes: (length: number) => Uint8Array
  /** Called between the reads, so that others run. */
  readonly pause: () => Promise<void>
}

export interface IndexSample {
  readonly sampled: number
  /** The first defect of each index that has one; without values. */
  readonly defects: readonly { readonly index: string; readonly defect: string }[]
}

/** A document of the largest size is decoded in about 10 ms. */
const TEXT_UNITS_MAX = 256 * 1024
/** Documents that are decoded or looked up between two pauses. */
const STEP = 10
const RANDOM_PLACES = 2

/**
 * Reads entries at both ends of each index and at random places between. The key of an entry must
 * be that of its document, and each document of the sample must be in every index of its table.
 * Throws what reads of the store throw.
 */
export async function sampleIndexes(
  store: DocumentStore,
  options: IndexSampleOptions,
): Promise<IndexSample> {
  const indexes = store.listIndexes().filter(({ state }) => state === 'ready')
  const defects: { index: string; defect: string }[] = []
  let sampled = 0
  for (const index of indexes.slice(0, options.indexesMax)) {
    try {
      const entries = await readSample(store, index, options)
      sampled += entries.length
      const defect =
        (await wrongKey(index, entries, options)) ??
        (await missingEntry(store, index, indexes, entries, options))
      if (defect !== null) defects.push(defect)
    } catch (error) {
      if (!isDamage(error)) throw error
      defects.push({ index: nameOf(index), defect: 'an entry has no document' })
    }
  }
  return { sampled, defects }
}

function isDamage(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === 'PRODUCT_CORRUPT'
}

export function nameOf({ table, fields }: PhysicalIndex): string {
  return `${table}(${fields.length === 0 ? 'creation' : fields.join(', ')})`
}

async function readSample(
  store: DocumentStore,
  index: PhysicalIndex,
  options: IndexSampleOptions,
): Promise<readonly KeyedDocument[]> {
  const { entriesMax: limit, randomBytes, pause } = options
  const read = async (lower: string, order: 'asc' | 'desc') => {
    await pause()
    const { documents } = await store.range({
      index: index.id,
      lower,
      upper: KEY_END,
      order,
      limit,
      textUnitsMax: TEXT_UNITS_MAX,
      snapshot: store.latestSequence,
    })
    return documents
  }
  const first = await read('', 'asc')
  const last = await read('', 'desc')
  const found = new Map([...first, ...last].map((entry) => [entry.key, entry]))
  const [low, high] = [first[0]?.key, last[0]?.key]
  if (first.length === limit && low !== undefined && high !== undefined) {
    for (let place = 0; place < RANDOM_PLACES; place++) {
      for (const entry of await read(between(low, high, randomBytes), 'asc')) {
        found.set(entry.key, entry)
      }
    }
  }
  return [...found.values()]
}

/** Returns a random binary string between two keys: their common start, then a random byte. */
function between(
  low: string,
  high: string,
  randomBytes: IndexSampleOptions['randomBytes'],
): string {
  let common = 0
  while (common < low.length && low.charCodeAt(common) === high.charCodeAt(common)) common++
  const [from, to] = [low.charCodeAt(common) || 0, high.charCodeAt(common) || 0]
  const [first = 0, ...rest] = randomBytes(9)
  const step = from + Math.floor((first * (to - from + 1)) / 256)
  return low.slice(0, common) + String.fromCharCode(step) + binaryString(Uint8Array.from(rest))
}

async function wrongKey(
  index: PhysicalIndex,
  entries: readonly KeyedDocument[],
  { pause }: IndexSampleOptions,
) {
  for (const [at, { key, document }] of entries.entries()) {
    if (at % STEP === 0) await pause()
    if (storedKey(index, document) === key) continue
    const defect = `the entry of ${document.id} does not have the values of the document`
    return { index: nameOf(index), defect }
  }
  return null
}

/** Looks for the documents of a sample in the other indexes of their table. */
async function missingEntry(
  store: DocumentStore,
  sampled: PhysicalIndex,
  indexes: readonly PhysicalIndex[],
  entries: readonly KeyedDocument[],
  { pause }: IndexSampleOptions,
) {
  // Every document is in the index of the order of creation.
  if (sampled.fields.length > 0) return null
  for (const index of indexes.filter(({ table }) => table === sampled.table)) {
    for (const [at, { document }] of entries.entries()) {
      if (at % STEP === 0) await pause()
      const key = storedKey(index, document)
      if (key === null) continue
      const { documents } = await store.range({
        index: index.id,
        lower: key,
        upper: keySuccessor(key),
        order: 'asc',
        limit: 1,
        textUnitsMax: TEXT_UNITS_MAX,
        snapshot: store.latestSequence,
      })
      if (documents.length === 0) {
        return { index: nameOf(sampled), defect: `${document.id} has no entry in ${nameOf(index)}` }
      }
    }
  }
  return null
}
