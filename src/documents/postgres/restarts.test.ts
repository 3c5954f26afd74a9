/**
 * @module-tag slow
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OwnCluster, ownCluster } from '../../../testing/databases/cluster.ts'
import { documentId, operationRecord, whole } from '../../../testing/documents/store-fixtures.ts'
import { openDocuments } from '../../../testing/documents/stores.ts'
import { isFault } from '../../errors/fault.ts'
import { indexKey } from '../keys.ts'
import type { DocumentStore, TransactionWrite } from '../store.ts'

let cluster: OwnCluster

beforeAll(async () => {
  cluster = await ownCluster()
})

afterAll(async () => {
  await cluster.dispose()
})

/** Commits like a committer: one batch at a time, with sequences after the stored ones. */
class Traffic {
  readonly acknowledged = new Set<number>()
  readonly rejected: string[] = []
  readonly #store: DocumentStore
  #running = true
  #done: Promise<void> = Promise.resolve()
  #operation = 0

  constructor(store: DocumentStore) {
    this.#store = store
  }

  start(): void {
    this.#done = this.#run()
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#done
  }

  async #run(): Promise<void> {
    while (this.#running) {
      const first = this.#store.latestSequence + 1
      const sequences = [first, first + 1, first + 2]
      try {
        await this.#store.commit({ transactions: sequences.map((each) => this.#write(each)) })
        for (const each of sequences) this.acknowledged.add(each)
      } catch (error) {
        if (!isFault(error)) throw error
        this.rejected.push(error.code)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }

  #write(sequence: number): TransactionWrite {
    this.#operation += 1
    const index = this.#store.listIndexes()[0]!
    const id = documentId('notes', sequence)
    const fields = new Map([['n', BigInt(sequence)]])
    const key = indexKey(index, { id, createdAtMicros: 0n, fields })
    const text = JSON.stringify({ n: { $i: String(sequence) } })
    const entries = [{ index: index.id, key, live: true }]
    const operation = operationRecord(this.#operation, { commitSequence: sequence })
    return {
      sequence,
      atMicros: 0n,
      operation,
      writes: [{ id, createdAtMicros: 0n, text, entries }],
    }
  }
}

test('acknowledged commits survive stops, crashes and restarts of PostgreSQL', async () => {
  const store = await openDocuments(cluster.url)
  const [index] = await store.ensureIndexes([{ table: 'notes', fields: ['n'] }])
  await store.buildIndex(index!.id)
  const traffic = new Traffic(store)
  traffic.start()
  for (const end of ['stop', 'kill', 'kill'] as const) {
    const before = traffic.acknowledged.size
    await expect.poll(() => traffic.acknowledged.size).toBeGreaterThan(before + 30)
    await cluster[end]()
    // A missing document, since a cached one would be found.
    const read = Promise.resolve().then(() => store.read(documentId('missing', 1), 1))
    const code = await read.then(String, (error) => (isFault(error) ? error.code : String(error)))
    expect(code).toBe('UNAVAILABLE')
    await cluster.start()
  }
  const before = traffic.acknowledged.size
  await expect.poll(() => traffic.acknowledged.size).toBeGreaterThan(before + 30)
  await traffic.stop()
  expect(store.status).toEqual({ state: 'open' })
  expect(traffic.rejected.filter((code) => code !== 'UNAVAILABLE')).toEqual([])
  const latest = store.latestSequence
  const { documents } = await store.range(whole(index!.id, latest))
  expect(documents.map(({ document }) => document.sequence)).toEqual([...traffic.acknowledged])
  await store.close()
  const again = await openDocuments(cluster.url)
  expect(again.latestSequence).toBe(latest)
  await again.close()
})
