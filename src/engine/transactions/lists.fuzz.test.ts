/**
 * Goal: lists of a Mutation show its writes after any reads and rollbacks to savepoints. Method:
 * random writes, savepoints and lists over a small in-memory store, compared with a plain list.
 */
import { expect, test } from 'vitest'
import { fuzz, type Random } from '../../../testing/fuzzing/fuzz.ts'
import { indexKey } from '../../documents/keys.ts'
import type {
  DocumentStore,
  KeyedDocument,
  PhysicalIndex,
  RangeRequest,
  RangeResult,
  StoredDocument,
} from '../../documents/store.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { prepareRelease } from '../releases/prepared-release.ts'
import { Transaction } from './transaction.ts'

const INT64 = { type: 'int64' } as const
const ALL = { table: 'notes', index: 'byN', equal: [] } as const
const INDEXES: readonly PhysicalIndex[] = [
  { id: 1, table: 'notes', fields: [], state: 'ready' },
  { id: 2, table: 'notes', fields: ['n'], state: 'ready' },
]
const RELEASE = prepareRelease(
  {
    releaseId: 'rel_1' as ReleaseId,
    source: '',
    sourceMap: null,
    functions: new Map(),
    tables: new Map([
      [
        'notes',
        {
          name: 'notes',
          fields: { n: INT64 },
          indexes: [{ name: 'byN', fields: ['n'], unique: false }],
        },
      ],
    ]),
  },
  INDEXES,
)

interface Note {
  readonly id: string
  readonly createdAtMicros: bigint
  readonly n: bigint
}

/** A Mutation on these notes, and the number of documents that its store scanned. */
function mutationOn(notes: readonly Note[]) {
  const scanned = { count: 0 }
  const keyed = INDEXES.map((index) => {
    const rows = notes.map(({ n, ...note }): KeyedDocument => {
      const key = indexKey(index, { ...note, fields: new Map([['n', n]]) })
      return { key, document: { ...note, sequence: 1, text: `{"n":{"$i":"${n}"}}` } }
    })
    return rows.sort((a, b) => (a.key < b.key ? -1 : 1))
  })
  const store = {
    range({ index, lower, upper, order, limit, textUnitsMax }: RangeRequest): RangeResult {
      const rows = keyed[index - 1]!.filter(({ key }) => key >= lower && key < upper)
      if (order === 'desc') rows.reverse()
      const documents: KeyedDocument[] = []
      let units = 0
      for (const row of rows) {
        documents.push(row)
        scanned.count += 1
        units += row.document.text.length
        if (documents.length === limit || units >= textUnitsMax) {
          return { documents, exhausted: false }
        }
      }
      return { documents, exhausted: true }
    },
    read: (id: string) => keyed[0]!.find(({ document }) => document.id === id)?.document ?? null,
  } as unknown as DocumentStore
  const mutation = new Transaction({
    store,
    release: RELEASE,
    snapshot: 1,
    pending: null,
    nowMicros: 9_000n,
    seed: '00'.repeat(32),
    writable: true,
  })
  return { mutation, scanned }
}

const notesOf = (count: number, nOf: (i: number) => number): Note[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `notes_${String(i).padStart(26, '0')}`,
    createdAtMicros: BigInt(i),
    n: BigInt(nOf(i)),
  }))

type Range = Parameters<Transaction['range']>[0]

/** Returns the IDs of all pages, and expects every page but the last to be full. */
function listAll(mutation: Transaction, range: Omit<Range, 'afterKey'>): readonly string[] {
  const found: StoredDocument[] = []
  for (let afterKey: string | undefined; ; ) {
    const page = mutation.range({ ...range, afterKey })
    if (page instanceof Promise) throw new Error('the store is synchronous')
    found.push(...page.documents)
    if (page.done) return found.map(({ id }) => id)
    expect(page.documents).toHaveLength(range.limit)
    afterKey = page.lastKey!
  }
}

function expectList(random: Random, mutation: Transaction, notes: readonly Note[]): void {
  const n = random.chance(2) ? random.below(3) : null
  const order = random.pick(['asc', 'desc'] as const)
  const expected = notes
    .filter((note) => n === null || note.n === BigInt(n))
    .sort((a, b) => Number(a.n - b.n) || (a.createdAtMicros < b.createdAtMicros ? -1 : 1))
    .map(({ id }) => id)
  if (order === 'desc') expected.reverse()
  const equal = n === null ? [] : [{ $i: `${n}` }]
  const range = { ...ALL, equal, order, limit: 1 + random.below(4) }
  expect(listAll(mutation, range)).toEqual(expected)
}

function writeOne(random: Random, mutation: Transaction, notes: readonly Note[]): Note[] {
  if (notes.length === 0) return []
  const note = random.pick(notes)
  const others = notes.filter(({ id }) => id !== note.id)
  if (random.chance(2)) {
    mutation.delete(note.id)
    return others
  }
  const n = BigInt(random.below(3))
  mutation.patch(note.id, { n: { $i: `${n}` } }, [])
  return [...others, { ...note, n }]
}

fuzz('a list of a Mutation shows the stored documents with its own writes', (random) => {
  let notes = notesOf(random.below(7), () => random.below(3))
  const { mutation } = mutationOn(notes)
  const savepoints: { readonly end: (commits: boolean) => void; readonly notes: Note[] }[] = []
  for (let steps = 6; steps > 0; steps--) {
    const step = random.below(8)
    const last = step < 2 ? savepoints.pop() : undefined
    if (last !== undefined) {
      const commits = random.chance(3)
      last.end(commits)
      if (!commits) notes = last.notes
    } else if (step < 3) savepoints.push({ end: mutation.savepoint(), notes })
    else if (step < 6) notes = writeOne(random, mutation, notes)
    else expectList(random, mutation, notes)
  }
  expectList(random, mutation, notes)
})

test.each(['asc', 'desc'] as const)(
  'a loop that takes the first document and changes it, %s, does not rescan changed ones',
  (order) => {
    const { mutation, scanned } = mutationOn(notesOf(300, () => 0))
    const range = { ...ALL, equal: [{ $i: '0' }], order, limit: 1 }
    for (let i = 0; i < 300; i++) {
      const { documents } = mutation.range(range) as { documents: readonly StoredDocument[] }
      mutation.patch(documents[0]!.id, { n: { $i: '1' } }, [])
    }
    expect(listAll(mutation, range)).toEqual([])
    expect(scanned.count).toBeLessThan(1_000)
  },
)
