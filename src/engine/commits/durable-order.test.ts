/**
 * Goal: whatever a caller is told follows from one order of durable commits, also while commits
 * fail and their sequences are given again. Method: transfers between few accounts over a store
 * that fails at random; each notes what it saw, and what it was answered must fit the history.
 */
import { expect, test } from 'vitest'
import { heldEngine, idOf, int, turn } from '../../../build/testing/documents/held-engines.ts'
import { DeclaredFailure, type TestHandler } from '../../../build/testing/engine/in-process-pool.ts'
import { Random } from '../../../build/testing/fuzzing/fuzz.ts'
import { SEED } from '../../../build/testing/seeds.ts'
import type { CommitBatch } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { realSystem } from '../../system/system.ts'
import type { TypedId } from '../../value/values.ts'

const TRANSFERS = 2_000
const system = realSystem()

interface Sight {
  readonly id: string
  readonly revision: number
  readonly balance: number
}

interface Answered {
  readonly operationId: string
  readonly sights: readonly Sight[]
  /** Null for a failure, and where nothing was written. */
  readonly sequence: number | null
}

/** Versions by document, in order. */
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

/** The sequences at which all of it was true, or null. */
function momentOf(
  history: ReturnType<typeof historyOf>,
  sights: readonly Sight[],
): readonly [from: number, to: number] | null {
  let [from, to] = [0, Number.POSITIVE_INFINITY]
  for (const { id, revision, balance } of sights) {
    const versions = history.get(id)!
    const at = versions.findIndex(([sequence]) => sequence === revision)
    if (versions[at]?.[1] !== balance) return null
    from = Math.max(from, revision)
    to = Math.min(to, (versions[at + 1]?.[0] ?? Number.POSITIVE_INFINITY) - 1)
  }
  return from <= to ? [from, to] : null
}

/** A handler that notes what its last run saw. */
function transfer(runs: Map<number, Sight[]>, pause: () => Promise<void>): TestHandler {
  return async (db, { input: [from, to, amount, order] }) => {
    const sights: Sight[] = []
    runs.set(order, sights)
    for (const id of [idOf(from), idOf(to)]) {
      await pause()
      const { balance, _revision } = await db.get(id)
      sights.push({ id, revision: Number(_revision.$i), balance: Number(balance.$i) })
    }
    await pause()
    const [source, target] = sights.map(({ balance }) => balance) as [number, number]
    if (source < amount) throw new DeclaredFailure('NO_FUNDS')
    if (amount === 0) return null
    await db.patch(idOf(from), { balance: int(source - amount) })
    await db.patch(idOf(to), { balance: int(target + amount) })
    return null
  }
}

test(`every answer follows from one order of durable commits (SVC_SEED=${SEED})`, async () => {
  const random = new Random(SEED)
  const pause = async () => {
    for (let left = random.below(4); left > 0; left--) await turn()
  }
  const runs = new Map<number, Sight[]>()
  let failed = 0
  const bench = await heldEngine({ transfer: transfer(runs, pause) }, async () => {
    await pause()
    if (random.below(5) > 0) return
    failed += 1
    throw new Fault('UNAVAILABLE', { detail: 'the test' })
  })
  const ids: TypedId[] = []
  while (ids.length < 5)
    await bench.account(100).then(
      (id) => ids.push(id),
      () => undefined,
    )
  const answers: Answered[] = []
  const told: Record<string, number> = {}
  let left = TRANSFERS
  const writer = async () => {
    while (left > 0) {
      const order = left--
      const from = random.below(ids.length)
      const to = (from + 1 + random.below(ids.length - 1)) % ids.length
      const operationId = system.ids.make('opn')
      const input = [ids[from]!, ids[to]!, random.below(120), order]
      const outcome = await bench.call('transfer', input, operationId).then(
        ({ commitSequence }) => ({ code: 'done', sequence: commitSequence }),
        ({ code }: Fault) => ({ code, sequence: null }),
      )
      told[outcome.code] = (told[outcome.code] ?? 0) + 1
      if (outcome.code === 'UNAVAILABLE') continue
      answers.push({ operationId, sights: runs.get(order)!, sequence: outcome.sequence })
    }
  }
  await Promise.all(Array.from({ length: 12 }, writer))
  const history = historyOf(bench.held.stored)
  for (const { sights, sequence } of answers) {
    const moment = momentOf(history, sights)
    expect(moment, JSON.stringify(sights)).not.toBeNull()
    // What it wrote stands directly behind what it saw.
    if (sequence !== null) expect(moment![1]).toBe(sequence - 1)
  }
  const sum = [...history.values()].reduce((all, versions) => all + versions.at(-1)![1], 0)
  expect(sum).toBe(500)
  const recorded = bench.held.stored.flatMap(({ transactions }) => transactions)
  expect(new Set(recorded.map(({ operation }) => operation!.operationId)).size - ids.length).toBe(
    told.done,
  )
  // Without failures of each kind the test would not have tried what it is for.
  expect(Object.keys(told).sort()).toEqual(['APP_NO_FUNDS', 'UNAVAILABLE', 'done'])
  expect(failed).toBeGreaterThan(20)
  await bench.close()
})
