/** Compares random histories of a document store with a model that has all versions in memory. */

import { expect, test } from 'vitest'
import type { DocumentStore, DocumentWrite, PhysicalIndex } from '../../src/documents/store.ts'
import { fc, inputs } from '../properties.ts'
import {
  documentId,
  EVERYTHING,
  fieldsOf,
  found,
  Model,
  type StoreHarness,
  whole,
} from './store-fixtures.ts'

const TABLES = ['a', 'messages'] as const
const DEFINITIONS = TABLES.flatMap((table) => [
  { table, fields: [] },
  { table, fields: ['x'] },
  { table, fields: ['y', 'x'] },
])

const change = fc.record({
  table: fc.constantFrom(...TABLES),
  number: fc.nat(7),
  fields: fc.option(
    fc.record({ x: fc.constantFrom(1n, 2n, null), y: fc.constantFrom('p', 'q', '') }),
    { freq: 4 },
  ),
})
const step = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ commit: fc.array(change, { minLength: 1, maxLength: 6 }) }),
  },
  { weight: 2, arbitrary: fc.record({ ensure: fc.nat(DEFINITIONS.length - 1) }) },
  { weight: 2, arbitrary: fc.record({ build: fc.nat(DEFINITIONS.length - 1) }) },
  { weight: 1, arbitrary: fc.record({ drop: fc.nat(DEFINITIONS.length - 1) }) },
  { weight: 2, arbitrary: fc.record({ prune: fc.nat(6) }) },
  { weight: 1, arbitrary: fc.constant({ reopen: true } as const) },
)
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** One history: the store, its expected content, and the snapshots that must be readable. */
class History {
  readonly #harness: StoreHarness
  readonly #model = new Model()
  /** The first readable snapshot by index. */
  readonly #readable = new Map<number, number>()
  #store: DocumentStore
  #horizon = 0

  constructor(harness: StoreHarness, store: DocumentStore) {
    this.#harness = harness
    this.#store = store
  }

  async run(next: Step): Promise<void> {
    const { sequence } = this.#model
    if ('commit' in next) {
      await this.#commit(next.commit)
    } else if ('ensure' in next) {
      await this.#store.ensureIndexes([DEFINITIONS[next.ensure]!])
    } else if ('build' in next) {
      const [index] = await this.#store.ensureIndexes([DEFINITIONS[next.build]!])
      await this.#store.buildIndex(index!.id)
      if (!this.#readable.has(index!.id)) this.#readable.set(index!.id, sequence)
    } else if ('drop' in next) {
      const index = this.#store.listIndexes()[next.drop]
      if (index !== undefined) await this.#store.dropIndex(index.id)
    } else if ('prune' in next) {
      await this.#prune(Math.max(0, sequence - next.prune))
    } else {
      await this.#store.close()
      this.#store = await this.#harness.open()
      this.#horizon = sequence
    }
  }

  async #commit(changes: readonly Change[]): Promise<void> {
    const indexes = this.#store.listIndexes()
    const writes = new Map<string, DocumentWrite>()
    for (const { table, number, fields } of changes) {
      const id = documentId(table, number)
      if (writes.has(id)) continue
      const value = fields === null ? null : fieldsOf(fields)
      writes.set(id, this.#model.write(indexes, { table, number }, value))
    }
    const atMicros = BigInt(this.#model.sequence) * 2_000_000n
    await this.#model.commit(this.#store, [...writes.values()], atMicros)
  }

  async #prune(oldestSnapshot: number): Promise<void> {
    const beforeMicros = BigInt(EVERYTHING)
    const request = { oldestSnapshot, beforeMicros, operationsBeforeMicros: 0n, rowsMax: 4 }
    const { more } = await this.#store.prune(request)
    this.#horizon = Math.max(this.#horizon, oldestSnapshot)
    if (more) await this.#store.prune(request)
  }

  /** Compares all reads of the store with those of the model. */
  async check(): Promise<void> {
    const newest = this.#model.sequence
    expect(this.#store.latestSequence).toBe(newest)
    for (let snapshot = this.#horizon; snapshot <= newest; snapshot++) {
      for (const id of this.#model.documents.keys()) {
        expect(await this.#store.read(id, snapshot)).toEqual(this.#model.read(id, snapshot))
      }
      for (const index of this.#store.listIndexes()) await this.#checkIndex(index, snapshot)
    }
  }

  async #checkIndex(index: PhysicalIndex, snapshot: number): Promise<void> {
    if (index.state !== 'ready' || snapshot < this.#readable.get(index.id)!) return
    const all = this.#model.range(index, snapshot)
    expect((await found(this.#store.range(whole(index.id, snapshot)))).documents).toEqual(all)
    const request = { ...whole(index.id, snapshot), order: 'desc' as const, limit: 2 }
    const last = await found(this.#store.range(request))
    expect(last.documents).toEqual(all.toReversed().slice(0, 2))
  }

  async end(): Promise<void> {
    await this.#store.close()
    await this.#harness.dispose()
  }
}

const RUNS = process.env.SVC_TEST_LONG === '1' ? 60 : 20

export function documentHistorySuite(name: string, make: () => Promise<StoreHarness>): void {
  test(`any history of ${name} is read as if every version were kept`, {
    tags: ['slow'],
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const harness = await make()
        const history = new History(harness, await harness.open())
        try {
          for (const next of steps) await history.run(next)
          await history.check()
        } finally {
          await history.end()
        }
      }),
      { numRuns: inputs(RUNS) },
    )
  })
}
