/**
 * The states of a piece of scheduled work as a table: what each event makes of it in each state, by
 * what its Function does. A state that a row does not name stays as it is. Then the races of two
 * events: the one that is stored first decides.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { type HeldStore, heldStore } from '../../../testing/documents/held-stores.ts'
import { type SimulatedEngine, simulatedEngine } from '../../../testing/engine/simulated-engine.ts'
import { functionManifest } from '../../../testing/products.ts'
import type { DocumentStore } from '../../documents/store.ts'
import { SCHEDULED_STATES, type ScheduledState } from '../../value/scheduling/scheduled-work.ts'
import {
  finishWork,
  insertWork,
  readWork,
  type ScheduledSummary,
  startWork,
} from '../scheduled-work/scheduled-documents.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const retry = {
  maximumAttempts: 2,
  backoff: { initialMillis: DAY, factor: 1, maximumMillis: DAY },
}
const uses = { network: [], secrets: [] }
const FUNCTIONS = [
  functionManifest('a.store', { kind: 'mutation' }),
  functionManifest('a.throwing', { kind: 'mutation' }),
  functionManifest('b.send', { kind: 'action', uses }),
  functionManifest('b.throwing', { kind: 'action', uses }),
  functionManifest('b.retried', { kind: 'action', uses, retry }),
]
type Name = (typeof NAMES)[number]
const NAMES = ['a.store', 'a.throwing', 'b.send', 'b.throwing', 'b.retried'] as const
const kindOf = (name: Name) => (name.startsWith('a.') ? 'mutation' : 'action')

let bench: SimulatedEngine | null = null
let runs: string[] = []
afterEach(async () => {
  await bench?.close()
  bench = null
})

async function open(wrap?: (store: DocumentStore) => DocumentStore) {
  runs = []
  const handlers = Object.fromEntries(
    NAMES.map((name) => [
      name,
      () => {
        runs.push(name)
        if (name !== 'a.store' && name !== 'b.send') throw new Error(name)
        return null
      },
    ]),
  )
  bench = await simulatedEngine({ functions: FUNCTIONS, handlers, ...(wrap && { wrap }) })
  return bench
}

/** Stores a piece in the state, which is due in an hour. */
function stored(of: SimulatedEngine, name: Name, state: ScheduledState): Promise<string> {
  const { engine, system, release } = of
  return engine.documents.change(async (transaction) => {
    const id = await insertWork(transaction, {
      function: name,
      kind: kindOf(name),
      releaseId: release.releaseId,
      argumentsText: '{}',
      source: 'function',
      cron: null,
      dueAtMicros: system.nowMicros() + BigInt(HOUR) * 1_000n,
    })
    if (state === 'running') await startWork(transaction, (await readWork(transaction, id))!)
    else if (state !== 'pending') {
      const finish = { attempts: 1, errorCode: null, atMicros: system.nowMicros() }
      await finishWork(transaction, id, { state, ...finish })
    }
    return id
  })
}

async function workOf({ engine }: SimulatedEngine, id: string): Promise<ScheduledSummary> {
  const { items } = await engine.scheduler.list(null, 100)
  return items.find(({ scheduledId }) => scheduledId === id)!
}

const told = ({ state, attempts, lastErrorCode }: ScheduledSummary) =>
  `${state}, ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, ${lastErrorCode ?? 'no error'}`

/** Each event returns the engine that has the work afterwards. */
const EVENTS = {
  'is canceled': async (of: SimulatedEngine, id: string) => {
    await of.engine.scheduler.cancel(id)
    return of
  },
  'is due': async (of: SimulatedEngine) => {
    await of.advance(HOUR)
    return of
  },
  'is asked to run again': async (of: SimulatedEngine, id: string) => {
    const { function: name, kind, releaseId } = await workOf(of, id)
    await of.engine.scheduler.rerun(id, { function: name, kind, releaseId, rerunBy: null })
    await of.engine.scheduler.whenSettled()
    return of
  },
  'is there when the server starts': (of: SimulatedEngine) => of.reopen(),
}
type Event = keyof typeof EVENTS

const CANCELED = { pending: 'canceled, 0 attempts, no error' }
const FAILED = { pending: 'failed, 1 attempt, FUNCTION_FAILED' }
const SUCCEEDED = { pending: 'succeeded, 1 attempt, no error' }
const UNCERTAIN = { running: 'failed, 1 attempt, RESULT_UNCERTAIN' }
const AGAIN_SUCCEEDED = { failed: 'succeeded, 2 attempts, no error' }
const AGAIN_FAILED = { failed: 'failed, 2 attempts, FUNCTION_FAILED' }
/** No Mutation is stored as running. */
const NEVER = {}
const TABLE: Readonly<
  Record<Event, Readonly<Record<Name, Partial<Record<ScheduledState, string>>>>>
> = {
  'is canceled': {
    'a.store': CANCELED,
    'a.throwing': CANCELED,
    'b.send': CANCELED,
    'b.throwing': CANCELED,
    'b.retried': CANCELED,
  },
  'is due': {
    'a.store': SUCCEEDED,
    'a.throwing': FAILED,
    'b.send': SUCCEEDED,
    'b.throwing': FAILED,
    'b.retried': { pending: 'pending, 1 attempt, FUNCTION_FAILED' },
  },
  'is asked to run again': {
    'a.store': AGAIN_SUCCEEDED,
    'a.throwing': AGAIN_FAILED,
    'b.send': AGAIN_SUCCEEDED,
    'b.throwing': AGAIN_FAILED,
    // The attempts are counted on, so this was its last one.
    'b.retried': AGAIN_FAILED,
  },
  'is there when the server starts': {
    'a.store': NEVER,
    'a.throwing': NEVER,
    'b.send': UNCERTAIN,
    'b.throwing': UNCERTAIN,
    'b.retried': { running: 'pending, 1 attempt, RESULT_UNCERTAIN' },
  },
}

describe.each(Object.keys(EVENTS) as Event[])('work that %s', (event) => {
  test.each(NAMES)(
    'the work has the next state of its row: %s',
    { tags: ['slow'] },
    async (name) => {
      let of = await open()
      const states = SCHEDULED_STATES.filter(
        (state) => kindOf(name) === 'action' || state !== 'running',
      )
      const pieces = new Map<ScheduledState, string>()
      for (const state of states) pieces.set(state, await stored(of, name, state))
      const before = new Map<ScheduledState, string>()
      for (const [state, id] of pieces) before.set(state, told(await workOf(of, id)))
      const isOfOne = event === 'is canceled' || event === 'is asked to run again'
      for (const id of isOfOne ? pieces.values() : ['']) {
        of = await EVENTS[event](of, id)
      }
      bench = of
      for (const [state, id] of pieces) {
        const expected = TABLE[event][name][state] ?? before.get(state)
        expect(told(await workOf(of, id)), `from ${state}`).toBe(expected)
      }
      const hasRun = event === 'is due' || event === 'is asked to run again'
      expect(runs).toEqual(hasRun ? [name] : [])
    },
  )
})

describe.each(['a.store', 'b.send'] as const)('of a start and a cancellation, %s', (name) => {
  /** Opens an engine with one piece, whose commits the test holds. */
  async function raced() {
    let held: HeldStore
    const of = await open((store) => {
      held = heldStore(store)
      return held.store
    })
    return { of, held: held!, id: await stored(of, name, 'pending') }
  }

  /** Makes the work due without waiting for its end. */
  function makeDue({ system, timers }: SimulatedEngine): void {
    system.advance(HOUR)
    timers.run()
  }

  test('runs where its start is stored first', async () => {
    const { of, held, id } = await raced()
    held.hold()
    makeDue(of)
    await held.arrived()
    const canceling = of.engine.scheduler.cancel(id)
    held.release()
    expect(await canceling).toMatchObject({ hasChanged: false })
    await of.engine.scheduler.whenSettled()
    expect([(await workOf(of, id)).state, runs]).toEqual(['succeeded', [name]])
  })

  test('the work is canceled if its cancellation is stored first', { tags: ['slow'] }, async () => {
    const { of, held, id } = await raced()
    held.hold()
    const canceling = of.engine.scheduler.cancel(id)
    await held.arrived()
    makeDue(of)
    await expect.poll(() => of.engine.scheduler.statistics.running).toBe(1)
    held.release()
    expect(await canceling).toMatchObject({ hasChanged: true })
    await of.engine.scheduler.whenSettled()
    const { state, attempts } = await workOf(of, id)
    expect({ state, attempts }).toEqual({ state: 'canceled', attempts: 0 })
    // The code of an Action must not begin; that of a Mutation may, and stores nothing.
    if (name === 'b.send') expect(runs).toEqual([])
  })
})

test('failed work runs again as the Function that the request names', async () => {
  const of = await open()
  const { scheduler } = of.engine
  const id = await stored(of, 'a.throwing', 'failed')
  const next = { function: 'b.send', kind: 'action', releaseId: of.release.releaseId } as const
  const { work, hasChanged } = (await scheduler.rerun(id, { ...next, rerunBy: 'opn_1' }))!
  expect({ hasChanged, ...work }).toMatchObject({
    hasChanged: true,
    state: 'pending',
    attempts: 1,
    finishedAtMicros: null,
    rerunBy: 'opn_1',
  })
  await scheduler.whenSettled()
  expect(runs).toEqual(['b.send'])
  expect(await scheduler.rerun('sch_00000000000000000000000000', { ...next, rerunBy: null })).toBe(
    null,
  )
})

test('a repeat of the request that made failed work run again leaves it alone', async () => {
  const of = await open()
  const { scheduler } = of.engine
  const id = await stored(of, 'a.throwing', 'failed')
  const { releaseId } = of.release
  const next = { function: 'a.throwing', kind: 'mutation', releaseId } as const
  await scheduler.rerun(id, { ...next, rerunBy: 'opn_1' })
  await scheduler.whenSettled()
  expect(await scheduler.rerun(id, { ...next, rerunBy: 'opn_1' })).toMatchObject({
    hasChanged: false,
    work: { state: 'failed', attempts: 2, rerunBy: 'opn_1' },
  })
  expect(await scheduler.rerun(id, { ...next, rerunBy: 'opn_2' })).toMatchObject({
    hasChanged: true,
  })
})
