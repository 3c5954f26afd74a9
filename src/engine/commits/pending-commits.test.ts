/**
 * The view that a Mutation has of pending commits. Method: random commits, durable batches and a
 * rollback, compared with a model that searches the list of all commits each time.
 */

import { describe, expect, test } from 'vitest'
import { fc } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import type { DocumentWrite } from '../../documents/store.ts'
import { PendingCommits } from './pending-commits.ts'
import type { CommitWrites } from './read-set.ts'

interface Commit {
  readonly sequence: number
  readonly documents: readonly DocumentWrite[]
  readonly writes: CommitWrites
}

/** Writes documents by number; a null text is a deletion. */
function commitOf(sequence: number, texts: Readonly<Record<number, string | null>>): Commit {
  const documents = Object.entries(texts).map(([number, text]) => ({
    id: `notes_${number}`,
    createdAtMicros: BigInt(number),
    text,
    entries: [],
  }))
  const writes = { documents: documents.map(({ id }) => id), keys: new Map() }
  return { sequence, documents, writes }
}

function pendingOf(...commits: readonly Commit[]): PendingCommits {
  const pending = new PendingCommits()
  for (const { sequence, documents, writes } of commits) pending.add(sequence, documents, writes)
  return pending
}

/** Returns how the promise has settled; `waits` where it has not. */
async function outcomeOf(promise: Promise<void>): Promise<string> {
  const outcome = promise.then(
    () => 'durable',
    (error: { code: string }) => error.code,
  )
  return Promise.race([outcome, new Promise<string>((resolve) => setImmediate(resolve, 'waits'))])
}

describe('a document that several commits wrote', () => {
  const pending = pendingOf(
    commitOf(5, { 1: '{"a":1}', 2: '{}' }),
    commitOf(6, { 1: null }),
    commitOf(8, { 1: '{"a":8}' }),
  )

  test('a read sees the newest version up to the snapshot, with its assigned sequence', () => {
    expect(pending.find('notes_1', 4)).toBeUndefined()
    expect(pending.find('notes_1', 5)).toEqual({
      id: 'notes_1',
      createdAtMicros: 1n,
      sequence: 5,
      text: '{"a":1}',
    })
    expect(pending.find('notes_1', 6)).toBeNull()
    expect(pending.find('notes_1', 7)).toBeNull()
    expect(pending.find('notes_1', 9)).toMatchObject({ sequence: 8, text: '{"a":8}' })
    expect(pending.find('notes_3', 9)).toBeUndefined()
  })

  test('a document that several commits wrote is the same object in each read of a version', () => {
    expect(pending.find('notes_2', 5)).toBe(pending.find('notes_2', 9))
  })
})

test('a snapshot is durable once every commit that it sees is durable', async () => {
  const pending = pendingOf(commitOf(5, { 1: '{}' }), commitOf(6, { 1: '{}' }))
  await pending.whenDurable(4)
  const [first, second] = [pending.whenDurable(5), pending.whenDurable(6)]
  pending.markDurable(4)
  expect(await outcomeOf(first)).toBe('waits')
  pending.markDurable(5)
  await first
  expect(await outcomeOf(second)).toBe('waits')
  pending.markDurable(6)
  await second
  await pending.whenDurable(9)
})

test('a rollback fails exactly the snapshots that see a pending commit, at any time', async () => {
  const pending = pendingOf(commitOf(5, { 1: '{}' }), commitOf(6, { 1: '{}' }))
  const waiting = [5, 6].map((snapshot) => outcomeOf(pending.whenDurable(snapshot)))
  pending.markDurable(5)
  pending.rollBack()
  expect(await Promise.all(waiting)).toEqual(['durable', 'UNAVAILABLE'])
  expect([5, 6, 7].map((snapshot) => pending.isRolledBack(snapshot))).toEqual([false, true, true])
  expect(await outcomeOf(pending.whenDurable(7))).toBe('UNAVAILABLE')
  await pending.whenDurable(5)
})

const text = fc.option(fc.constantFrom('{}', '{"a":1}'), { nil: null })
const written = fc.record({
  kind: fc.constant('commit' as const),
  texts: fc.dictionary(fc.constantFrom('1', '2', '3'), text),
})
const durable = fc.record({ kind: fc.constant('durable' as const), share: fc.nat({ max: 10 }) })
const rollback = fc.constant({ kind: 'rollback' as const })
const step = fc.oneof(
  { weight: 6, arbitrary: written },
  { weight: 3, arbitrary: durable },
  rollback,
)

/** The expected answers, computed from the list of all commits. */
class Model {
  readonly commits: Commit[] = []
  durable = 0
  isRolledBack = false

  get #pending(): readonly Commit[] {
    return this.commits.filter(({ sequence }) => sequence > this.durable)
  }

  #seen(snapshot: number): readonly Commit[] {
    return this.#pending.filter(({ sequence }) => sequence <= snapshot)
  }

  find(id: string, snapshot: number): unknown {
    const commit = this.#seen(snapshot).findLast(({ writes }) => writes.documents.includes(id))
    if (commit === undefined) return undefined
    const { createdAtMicros, text } = commit.documents.find((write) => write.id === id)!
    return text === null ? null : { id, createdAtMicros, sequence: commit.sequence, text }
  }

  outcome(snapshot: number): string {
    if (this.#seen(snapshot).length === 0) return 'durable'
    return this.isRolledBack ? 'UNAVAILABLE' : 'waits'
  }
}

test(`every snapshot sees what a search of all commits finds (SVC_SEED=${SEED})`, async () => {
  let rollbacks = 0
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const pending = new PendingCommits()
    const model = new Model()
    let sequence = 0
    for (const each of steps) {
      // The committer starts a new object after a rollback.
      if (model.isRolledBack) break
      if (each.kind === 'commit') {
        // Sequences ascend; a gap is a Mutation of another batch.
        sequence += 1 + (sequence % 2)
        const commit = commitOf(sequence, each.texts)
        model.commits.push(commit)
        pending.add(sequence, commit.documents, commit.writes)
      } else if (each.kind === 'durable') {
        model.durable = Math.max(model.durable, Math.round((sequence * each.share) / 10))
        pending.markDurable(model.durable)
      } else {
        model.isRolledBack = true
        pending.rollBack()
        rollbacks += 1
      }
    }
    for (let snapshot = 0; snapshot <= sequence + 1; snapshot++) {
      for (const id of ['notes_1', 'notes_2', 'notes_3', 'notes_4']) {
        expect(pending.find(id, snapshot)).toEqual(model.find(id, snapshot))
      }
      const expected = model.outcome(snapshot)
      expect(pending.isRolledBack(snapshot)).toBe(expected === 'UNAVAILABLE')
      expect(await outcomeOf(pending.whenDurable(snapshot))).toBe(expected)
    }
  })
  await fc.assert(property, { seed: SEED, numRuns: 500 })
  expect(rollbacks).toBeGreaterThan(50)
})
