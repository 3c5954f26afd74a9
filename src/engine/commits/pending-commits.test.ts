/**
 * What a Mutation sees of commits that are not durable yet. Method: random commits, settlements and
 * a loss, against a list that is searched from its beginning each time.
 */

import { describe, expect, test } from 'vitest'
import { fc } from '../../../build/testing/properties.ts'
import { SEED } from '../../../build/testing/seeds.ts'
import type { DocumentWrite } from '../../documents/store.ts'
import { PendingCommits } from './pending-commits.ts'
import type { CommitWrites } from './read-set.ts'

const KEYS = ['a', 'b', 'c', 'd']

interface Commit {
  readonly sequence: number
  readonly documents: readonly DocumentWrite[]
  readonly writes: CommitWrites
}

/** Documents by number; one without text is deleted. */
function commitOf(
  sequence: number,
  texts: Readonly<Record<number, string | null>>,
  keys: readonly (readonly [index: number, keys: readonly string[]])[] = [],
): Commit {
  const documents = Object.entries(texts).map(([number, text]) => ({
    ...{ id: `notes_${number}`, createdAtMicros: BigInt(number), text, entries: [] },
  }))
  const writes = { documents: documents.map(({ id }) => id), keys: new Map(keys) }
  return { sequence, documents, writes }
}

function holding(...commits: readonly Commit[]): PendingCommits {
  const pending = new PendingCommits()
  for (const { sequence, documents, writes } of commits) pending.add(sequence, documents, writes)
  return pending
}

/** Whether the promise has settled by now. */
async function outcomeOf(promise: Promise<void>): Promise<string> {
  const told = promise.then(
    () => 'durable',
    (error: { code: string }) => error.code,
  )
  return Promise.race([told, new Promise<string>((end) => setImmediate(end, 'waits'))])
}

describe('of a document that several commits wrote', () => {
  const pending = holding(
    commitOf(5, { 1: '{"a":1}', 2: '{}' }),
    commitOf(6, { 1: null }),
    commitOf(8, { 1: '{"a":8}' }),
  )

  test('a snapshot sees the newest up to it, with the sequence that it gets', () => {
    expect(pending.find('notes_1', 4)).toBeUndefined()
    expect(pending.find('notes_1', 5)).toEqual({
      ...{ id: 'notes_1', createdAtMicros: 1n, sequence: 5, text: '{"a":1}' },
    })
    expect(pending.find('notes_1', 6)).toBeNull()
    expect(pending.find('notes_1', 7)).toBeNull()
    expect(pending.find('notes_1', 9)).toMatchObject({ sequence: 8, text: '{"a":8}' })
    expect(pending.find('notes_3', 9)).toBeUndefined()
  })

  test('each read of a version answers one object', () => {
    expect(pending.find('notes_2', 5)).toBe(pending.find('notes_2', 9))
  })
})

test('an interval is touched by a key in it that the snapshot sees, and by no other', () => {
  const pending = holding(commitOf(5, {}, [[1, ['b', 'x']]]), commitOf(6, {}, [[2, ['c']]]))
  expect(pending.touch(1, { lower: 'b', upper: 'c' }, 5)).toBe(true)
  expect(pending.touch(1, { lower: 'a', upper: 'b' }, 9)).toBe(false)
  expect(pending.touch(1, { lower: 'c', upper: 'x' }, 9)).toBe(false)
  expect(pending.touch(1, { lower: 'b', upper: 'c' }, 4)).toBe(false)
  expect(pending.touch(2, { lower: 'a', upper: 'z' }, 5)).toBe(false)
  expect(pending.touch(2, { lower: 'a', upper: 'z' }, 6)).toBe(true)
  pending.settle(5)
  expect(pending.touch(1, { lower: 'a', upper: 'z' }, 9)).toBe(false)
})

test('a snapshot is durable when all that it sees is', async () => {
  const pending = holding(commitOf(5, { 1: '{}' }), commitOf(6, { 1: '{}' }))
  await pending.whenDurable(4)
  const [first, second] = [pending.whenDurable(5), pending.whenDurable(6)]
  pending.settle(4)
  expect(await outcomeOf(first)).toBe('waits')
  pending.settle(5)
  await first
  expect(await outcomeOf(second)).toBe('waits')
  pending.settle(6)
  await second
  await pending.whenDurable(9)
})

test('whoever sees a commit that is lost is told, at any time, and nobody else is', async () => {
  const pending = holding(commitOf(5, { 1: '{}' }), commitOf(6, { 1: '{}' }))
  const waiting = [5, 6].map((snapshot) => outcomeOf(pending.whenDurable(snapshot)))
  pending.settle(5)
  pending.lose()
  expect(await Promise.all(waiting)).toEqual(['durable', 'UNAVAILABLE'])
  expect([5, 6, 7].map((snapshot) => pending.isLost(snapshot))).toEqual([false, true, true])
  expect(await outcomeOf(pending.whenDurable(7))).toBe('UNAVAILABLE')
  await pending.whenDurable(5)
})

const text = fc.option(fc.constantFrom('{}', '{"a":1}'), { nil: null })
const written = fc.record({
  kind: fc.constant('commit' as const),
  texts: fc.dictionary(fc.constantFrom('1', '2', '3'), text),
  keys: fc.array(fc.tuple(fc.constantFrom(1, 2), fc.subarray(KEYS)), {
    maxLength: 2,
  }),
})
const settled = fc.record({ kind: fc.constant('settle' as const), share: fc.nat({ max: 10 }) })
const lost = fc.constant({ kind: 'lose' as const })
const step = fc.oneof({ weight: 6, arbitrary: written }, { weight: 3, arbitrary: settled }, lost)

/** The same, told from all commits that were ever made. */
class Model {
  readonly commits: Commit[] = []
  settled = 0
  isLost = false

  get #open(): readonly Commit[] {
    return this.commits.filter(({ sequence }) => sequence > this.settled)
  }

  #seen(snapshot: number): readonly Commit[] {
    return this.#open.filter(({ sequence }) => sequence <= snapshot)
  }

  find(id: string, snapshot: number): unknown {
    const commit = this.#seen(snapshot).findLast(({ writes }) => writes.documents.includes(id))
    if (commit === undefined) return undefined
    const { createdAtMicros, text } = commit.documents.find((write) => write.id === id)!
    return text === null ? null : { id, createdAtMicros, sequence: commit.sequence, text }
  }

  touch(index: number, lower: string, upper: string, snapshot: number): boolean {
    const keys = this.#seen(snapshot).flatMap(({ writes }) => writes.keys.get(index) ?? [])
    return keys.some((key) => key >= lower && key < upper)
  }

  outcome(snapshot: number): string {
    if (this.#seen(snapshot).length === 0) return 'durable'
    return this.isLost ? 'UNAVAILABLE' : 'waits'
  }
}

test(`every snapshot sees what a search of all commits finds (SVC_SEED=${SEED})`, async () => {
  let losses = 0
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const pending = new PendingCommits()
    const model = new Model()
    let sequence = 0
    for (const one of steps) {
      // Nothing is added to what is lost: others begin anew.
      if (model.isLost) break
      if (one.kind === 'commit') {
        // Sequences ascend; a gap is a Mutation of another batch.
        sequence += 1 + (sequence % 2)
        const commit = commitOf(sequence, one.texts, one.keys)
        model.commits.push(commit)
        pending.add(sequence, commit.documents, commit.writes)
      } else if (one.kind === 'settle') {
        model.settled = Math.max(model.settled, Math.round((sequence * one.share) / 10))
        pending.settle(model.settled)
      } else {
        model.isLost = true
        pending.lose()
        losses += 1
      }
    }
    for (let snapshot = 0; snapshot <= sequence + 1; snapshot++) {
      for (const id of ['notes_1', 'notes_2', 'notes_3', 'notes_4']) {
        expect(pending.find(id, snapshot)).toEqual(model.find(id, snapshot))
      }
      for (const index of [1, 2]) {
        const found = pending.touch(index, { lower: 'b', upper: 'd' }, snapshot)
        expect(found).toBe(model.touch(index, 'b', 'd', snapshot))
      }
      const expected = model.outcome(snapshot)
      expect(pending.isLost(snapshot)).toBe(expected === 'UNAVAILABLE')
      expect(await outcomeOf(pending.whenDurable(snapshot))).toBe(expected)
    }
  })
  await fc.assert(property, { seed: SEED, numRuns: 500 })
  expect(losses).toBeGreaterThan(50)
})
