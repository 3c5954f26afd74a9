/**
 * Ranges that Mutations read while commits are pending. Method: random commits, of which a prefix
 * is durable; each range is compared with a store in which all of them are.
 */
import { expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { indexKey } from '../../documents/keys.ts'
import type { KeyedDocument, PhysicalIndex, RangeResult } from '../../documents/store.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import { type BufferedWrite, documentWrite } from './document-writes.ts'
import { PendingCommits } from './pending-commits.ts'
import { mergePending } from './pending-ranges.ts'

const INDEXES: readonly PhysicalIndex[] = [
  { id: 1, table: 'notes', fields: [], state: 'ready' } as unknown as PhysicalIndex,
  { id: 2, table: 'notes', fields: ['a'], state: 'ready' } as unknown as PhysicalIndex,
]

const idOf = (number: number): string => `notes_${String(number).padStart(26, '0')}`
const createdAt = (number: number): bigint => BigInt(1_000 + number)

/** Values of the field by document; null for a deletion. */
type Change = readonly (readonly [document: number, value: number | null])[]
type State = ReadonlyMap<number, { readonly value: number; readonly sequence: number }>

function fieldsOf(value: number): ValueObject {
  return new Map([['a', BigInt(value)]])
}

/** Returns the state after the change, and the writes of its commit. */
function commitOf(before: State, change: Change, sequence: number) {
  const after = new Map(before)
  const writes: BufferedWrite[] = []
  for (const [number, value] of new Map(change)) {
    const old = before.get(number)
    if (old === undefined && value === null) continue
    if (value === null) after.delete(number)
    else after.set(number, { value, sequence })
    const [id, createdAtMicros] = [idOf(number), createdAt(number)]
    const text = value === null ? '{}' : encodeStored(fieldsOf(value))
    writes.push({
      id,
      table: 'notes',
      createdAtMicros,
      before: old === undefined ? null : fieldsOf(old.value),
      beforeUnits: 0,
      after: value === null ? null : fieldsOf(value),
      document: { id, createdAtMicros, sequence: 0, text },
    })
  }
  return { after, writes }
}

interface Request {
  readonly lower: string
  readonly upper: string
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** Documents after which the range ends, as it does at its size. */
  readonly most: number
}

/** The range of an index over all documents of the state. */
function rangeOf(state: State, index: PhysicalIndex, request: Request): RangeResult {
  const { lower, upper, order, limit, most } = request
  const keyed: KeyedDocument[] = [...state].map(([number, { value, sequence }]) => {
    const [id, createdAtMicros] = [idOf(number), createdAt(number)]
    const key = indexKey(index, { id, createdAtMicros, fields: fieldsOf(value) })
    return { key, document: { id, createdAtMicros, sequence, text: encodeStored(fieldsOf(value)) } }
  })
  const within = keyed
    .filter(({ key }) => key >= lower && key < upper)
    .sort((a, b) => (a.key < b.key === (order === 'asc') ? -1 : 1))
  const documents = within.slice(0, Math.min(limit, most))
  return { documents, exhausted: documents.length === within.length }
}

const change = fc.array(
  fc.tuple(fc.nat({ max: 5 }), fc.option(fc.nat({ max: 3 }), { nil: null, freq: 4 })),
  { minLength: 1, maxLength: 3 },
)

const scenario = fc.record({
  changes: fc.array(change, { minLength: 1, maxLength: 8 }),
  durable: fc.nat({ max: 8 }),
  seen: fc.nat({ max: 8 }),
  index: fc.constantFrom(...INDEXES),
  bounds: fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 })),
  order: fc.constantFrom('asc' as const, 'desc' as const),
  limit: fc.integer({ min: 1, max: 4 }),
  most: fc.constantFrom(1, 2, 99, 99, 99),
})

test(`a merged range is what a store with all commits has (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let merged = 0
  let waited = 0
  const property = fc.property(scenario, (each) => {
    const { changes, index, order, limit, most } = each
    const durable = Math.min(each.durable, changes.length)
    const snapshot = Math.min(durable + each.seen, changes.length)
    const pending = new PendingCommits()
    let state: State = new Map()
    let stored = state
    let seen = state
    for (const [i, writes] of changes.entries()) {
      const sequence = i + 1
      const commit = commitOf(state, writes, sequence)
      state = commit.after
      const keys = new Map<number, string[]>()
      const documents = commit.writes.map((write) => documentWrite(write, INDEXES, keys))
      pending.add(sequence, documents, { documents: documents.map(({ id }) => id), keys })
      if (sequence <= durable) stored = state
      if (sequence <= snapshot) seen = state
    }
    pending.markDurable(durable)
    const [low, high] = each.bounds
    const bound = (number: number) =>
      index.fields.length === 0
        ? indexKey(index, { id: '', createdAtMicros: createdAt(number), fields: fieldsOf(0) })
        : indexKey(index, { id: '', createdAtMicros: 0n, fields: fieldsOf(number) })
    const request = { lower: bound(low), upper: bound(high + 1), order, limit, most }
    const written = pending.range(index, request, snapshot)
    const expected = rangeOf(seen, index, { ...request, most: 99 })
    if (written === 'many') throw new Error('no scenario writes that many documents')
    if (written === null) {
      expect(rangeOf(stored, index, { ...request, most: 99 })).toEqual(expected)
      return
    }
    merged += 1
    const rows = rangeOf(stored, index, { ...request, limit: limit + written.ids.size })
    const found = mergePending(rows, written, request)
    if (found === null) {
      waited += 1
      expect(rows.documents.every(({ document }) => written.ids.has(document.id))).toBe(true)
      expect(rows.exhausted).toBe(false)
      return
    }
    // A range that ended at its size is a shorter one, never one with gaps.
    expect(found.documents).toEqual(expected.documents.slice(0, found.documents.length))
    if (rows.exhausted || most === 99) expect(found).toEqual(expected)
    else expect(found.documents.length > 0 || found.exhausted).toBe(true)
  })
  fc.assert(property, { seed: SEED, numRuns: 6_000 })
  // Twenty percent of them are merged on average.
  expect(merged).toBeGreaterThan(600)
  expect(waited).toBeGreaterThan(0)
})

test('pending keys of other tables and indexes are not in the interval', () => {
  const pending = new PendingCommits()
  const keys = new Map<number, string[]>()
  const { writes } = commitOf(new Map(), [[1, 2]], 5)
  const documents = writes.map((write) => documentWrite(write, [INDEXES[1]!], keys))
  pending.add(5, documents, { documents: documents.map(({ id }) => id), keys })
  const all = { lower: '', upper: '\xff\xff' }
  expect(pending.range(INDEXES[0]!, all, 5)).toBeNull()
  expect(pending.range(INDEXES[1]!, all, 4)).toBeNull()
  expect(pending.range(INDEXES[1]!, all, 5)).toMatchObject({ visible: [{}] })
})
