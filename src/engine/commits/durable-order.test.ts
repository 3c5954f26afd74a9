/**
 * Goal: every reply follows from one order of durable commits, also while commits fail and their
 * sequences are assigned again. Method: transfers between few accounts over a store that fails at
 * random. Each attempt records what it read, and every reply must fit the history of the store.
 */
import { expect, test } from 'vitest'
import { heldEngine, idOf, int, nextIteration } from '../../../testing/documents/held-engines.ts'
import { DeclaredFailure, type TestHandler } from '../../../testing/engine/in-process-pool.ts'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import { SEED } from '../../../testing/seeds.ts'
import type { CommitBatch, TransactionWrite } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import type { TypedId } from '../../value/values.ts'

const TRANSFERS = 2_000
const system = realSystem()

/** One document as an attempt read it. */
interface Observation {
  readonly id: string
  readonly revision: number
  readonly balance: number
}

interface Reply {
  readonly operationId: string
  readonly observations: readonly Observation[]
  /** Null for a failure, and where nothing was written. */
  readonly sequence: number | null
}

/** The stored versions by document ID, in the order of their sequences. */
function historyOf(
  stored: readonly CommitBatch[],
): Map<string, [sequence: number, balance: number][]> {
  const history = new Map<string, [number, number][]>()
  for (const { sequence, writes } of stored.flatMap(({ transactions }) => transactions)) {
    for (const { id, text } of writes) {
      const versions = history.get(id) ?? []
      history.set(id, versions)
      versions.push([sequence!, Number(JSON.parse(text!).balance.$i)])
    }
  }
  return history
}

/** Returns the sequences at which all observations held, or null if there are none. */
function intervalOf(
  history: ReturnType<typeof historyOf>,
  observations: readonly Observation[],
): readonly [from: number, to: number] | null {
  let [from, to] = [0, Number.POSITIVE_INFINITY]
  for (const { id, revision, balance } of observations) {
    const versions = history.get(id)!
    const position = versions.findIndex(([sequence]) => sequence === revision)
    if (versions[position]?.[1] !== balance) return null
    from = Math.max(from, revision)
    to = Math.min(to, (versions[position + 1]?.[0] ?? Number.POSITIVE_INFINITY) - 1)
  }
  return from <= to ? [from, to] : null
}

/** A handler that records what its last attempt read, by the number of the transfer. */
function transfer(
  lastAttempts: Map<number, Observation[]>,
  pause: () => Promise<void>,
): TestHandler {
  return async (db, { input: [from, to, amount, number] }) => {
    const observations: Observation[] = []
    lastAttempts.set(number, observations)
    for (const id of [idOf(from), idOf(to)]) {
      await pause()
      const { balance, _revision } = await db.get(id)
      observations.push({ id, revision: Number(_revision.$i), balance: Number(balance.$i) })
    }
    await pause()
    const [source, target] = observations.map(({ balance }) => balance) as [number, number]
    if (source < amount) throw new DeclaredFailure('NO_FUNDS')
    if (amount === 0) return null
    await db.patch(idOf(from), { balance: int(source - amount) })
    await db.patch(idOf(to), { balance: int(target + amount) })
    return null
  }
}

test(`every reply follows from one order of durable commits (SVC_SEED=${SEED})`, async () => {
  const random = new Random(SEED)
  const pause = async () => {
    for (let left = random.below(4); left > 0; left--) await nextIteration()
  }
  const lastAttempts = new Map<number, Observation[]>()
  let failedBatches = 0
  const bench = await heldEngine({ transfer: transfer(lastAttempts, pause) }, async () => {
    await pause()
    if (random.below(5) > 0) return
    failedBatches += 1
    throw new Fault('UNAVAILABLE', { detail: 'the test' })
  })
  const followed: TransactionWrite[] = []
  const follower = bench.engine.commits.follow((transactions) => followed.push(...transactions))
  expect(follower.from).toBe(0)
  const ids: TypedId[] = []
  while (ids.length < 5)
    await bench.account(100).then(
      (id) => ids.push(id),
      () => undefined,
    )
  const replies: Reply[] = []
  const outcomeCounts: Record<string, number> = {}
  let left = TRANSFERS
  const writer = async () => {
    while (left > 0) {
      const number = left--
      const from = random.below(ids.length)
      const to = (from + 1 + random.below(ids.length - 1)) % ids.length
      const operationId = system.ids.make('opn')
      const input = [ids[from]!, ids[to]!, random.below(120), number]
      const outcome = await bench.call('transfer', input, operationId).then(
        ({ commitSequence }) => ({ code: 'done', sequence: commitSequence }),
        ({ code }: Fault) => ({ code, sequence: null }),
      )
      outcomeCounts[outcome.code] = (outcomeCounts[outcome.code] ?? 0) + 1
      if (outcome.code === 'UNAVAILABLE') continue
      const observations = lastAttempts.get(number)!
      replies.push({ operationId, observations, sequence: outcome.sequence })
    }
  }
  await Promise.all(Array.from({ length: 12 }, writer))
  const history = historyOf(bench.held.stored)
  for (const { observations, sequence } of replies) {
    const interval = intervalOf(history, observations)
    expect(interval, JSON.stringify(observations)).not.toBeNull()
    // No other commit changed what it read before its own commit.
    if (sequence !== null) expect(interval![1]).toBe(sequence - 1)
  }
  const sum = [...history.values()].reduce((all, versions) => all + versions.at(-1)![1], 0)
  expect(sum).toBe(500)
  const recorded = bench.held.stored.flatMap(({ transactions }) => transactions)
  expect(followed).toEqual(recorded)
  expect(new Set(recorded.map(({ operation }) => operation!.operationId)).size - ids.length).toBe(
    outcomeCounts.done,
  )
  // Without failures of each kind the test would not cover its goal.
  expect(Object.keys(outcomeCounts).sort()).toEqual(['APP_NO_FUNDS', 'UNAVAILABLE', 'done'])
  expect(failedBatches).toBeGreaterThan(20)
  follower.stop()
  const again = bench.engine.commits.follow(() => undefined)
  expect(again.from).toBe(bench.engine.durableSequence())
  await bench.close()
})
