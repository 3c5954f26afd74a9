/** Scheduled work in real runners: its states, its bounds and what a call sees of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import type { Value } from '../../value/values.ts'
import {
  insertWork,
  readWork,
  type ScheduledSummary,
  startWork,
  type WorkFields,
} from '../scheduled-work/scheduled-documents.ts'

const SCHEMA = `tables({ marks: {
  fields: { name: { type: 'string' } },
  indexes: [{ name: 'byName', fields: ['name'], unique: false }],
} })`
const NAME = `arguments: { name: { type: 'string' } }`
const ID = `arguments: { id: { type: 'string' } }`
const BACKOFF = '{ initialMillis: 5, factor: 2, maximumMillis: 10 }'
const RETRY = `{ maximumAttempts: 4, backoff: ${BACKOFF} }`
const FUNCTIONS = `
mark: mutation(async (ctx, { name }) => { await ctx.db.insert('marks', { name }) }, { ${NAME} }),
marks: query(async (ctx, { name }) => {
  const found = ctx.db.table('marks').index('byName', (q) => q.eq('name', name))
  return (await found.collect()).length
}, { ${NAME} }),
later: mutation(async (ctx, { name, seconds }) =>
  ctx.scheduler.runAfter({ seconds }, ref('mutation', 'mark'), { name }),
  { arguments: { name: { type: 'string' }, seconds: { type: 'float64' } } }),
undone: mutation(async (ctx, { name }) => {
  await ctx.scheduler.runAfter({ seconds: 0 }, ref('mutation', 'mark'), { name })
  throw new Error('undone')
}, { ${NAME} }),
cancel: mutation(async (ctx, { id }) => ctx.scheduler.cancel(id), { ${ID} }),
get: mutation(async (ctx, { id }) => ctx.scheduler.get(id), { ${ID} }),
broken: mutation(async (ctx, { name }) => {
  await ctx.db.insert('marks', { name })
  throw new Error('broken')
}, { ${NAME} }),
laterBroken: mutation(async (ctx, { name }) =>
  ctx.scheduler.runAfter({ milliseconds: 1 }, ref('mutation', 'broken'), { name }), { ${NAME} }),
onlyUsers: mutation(async () => null, { auth: 'user' }),
bad: mutation(async (ctx, { way }) => {
  const schedule = (kind, name, input, delay = { days: 1 }) =>
    ctx.scheduler.runAfter(delay, ref(kind, name), input)
  if (way === 'query') return schedule('query', 'marks', { name: 'x' })
  if (way === 'absent') return schedule('mutation', 'absent')
  if (way === 'arguments') return schedule('mutation', 'mark', { name: 1 })
  if (way === 'identity') return schedule('mutation', 'onlyUsers')
  if (way === 'nothing') return schedule('mutation', 'mark', { name: 'x' }, {})
  if (way === 'delay') return schedule('mutation', 'mark', { name: 'x' }, { weeks: 1 })
  if (way === 'document') return ctx.db.get(await schedule('mutation', 'mark', { name: 'x' }))
  // More than 1,024, in few turns: each waits for the machine.
  const one = () => schedule('mutation', 'mark', { name: 'x' })
  for (let i = 0; i < 5; i++) await Promise.all(Array.from({ length: 256 }, one))
}, { arguments: { way: { type: 'string' } } }),
inQuery: query(async (ctx) => ctx.scheduler.runAfter({ seconds: 1 }, ref('mutation', 'mark'))),
act: action(async (ctx, { name }) => {
  await ctx.runMutation(ref('mutation', 'mark'), { name })
}, { ${NAME} }),
fails: action(async (ctx, { name }) => {
  await ctx.runMutation(ref('mutation', 'mark'), { name })
  throw new Error('no')
}, { ${NAME} }),
flaky: action(async (ctx, { name }) => {
  await ctx.runMutation(ref('mutation', 'mark'), { name })
  if (await ctx.runQuery(ref('query', 'marks'), { name }) < 3) throw new Error('again')
}, { ${NAME}, retry: ${RETRY} }),
planFlaky: mutation(async (ctx, { name }) =>
  ctx.scheduler.runAfter({ seconds: 0 }, ref('action', 'flaky'), { name }), { ${NAME} }),
plan: action(async (ctx, { name }) => {
  const first = await ctx.scheduler.runAfter({ days: 1 }, ref('mutation', 'mark'), { name })
  await ctx.scheduler.runAt(ctx.now(), ref('action', 'act'), { name })
  await ctx.scheduler.runAfter({ seconds: 0 }, ref('action', 'fails'), { name })
  await ctx.runMutation(ref('mutation', 'later'), { name, seconds: 0 })
  return ctx.scheduler.cancel(first)
}, { ${NAME} }),
`

let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(FUNCTIONS, { schema: SCHEMA })
  bench.engine.scheduler.start({ load: async () => bench.release, admits: () => true })
})
afterAll(() => bench.close())

async function workOf(id: Value): Promise<ScheduledSummary> {
  const { items } = await bench.engine.scheduler.list(null, 1_000)
  return items.find(({ scheduledId }) => scheduledId === id)!
}

async function ended(id: Value): Promise<ScheduledSummary> {
  return expect
    .poll(() => workOf(id), { interval: 20 })
    .toMatchObject({ state: expect.stringMatching(/succeeded|failed|canceled/) })
    .then(() => workOf(id))
}

describe('a scheduled Mutation', () => {
  test('runs once when it is due and its completion is recorded', async () => {
    const id = await bench.call('later', { name: 'due', seconds: 0.05 })
    expect(await workOf(id)).toMatchObject({ state: 'pending', attempts: 0, source: 'function' })
    const { state, attempts, lastErrorCode, finishedAtMicros, dueAtMicros } = await ended(id)
    expect({ state, attempts, lastErrorCode }).toEqual({
      state: 'succeeded',
      attempts: 1,
      lastErrorCode: null,
    })
    expect(finishedAtMicros! >= dueAtMicros).toBe(true)
    expect(await bench.call('marks', { name: 'due' })).toBe(1)
  })

  test('work is not scheduled by a Mutation that fails', async () => {
    const before = (await bench.engine.scheduler.list(null, 1_000)).items.length
    await expect(bench.call('undone', { name: 'undone' })).rejects.toThrow()
    expect((await bench.engine.scheduler.list(null, 1_000)).items).toHaveLength(before)
  })

  test('a scheduled Mutation that throws is failed, without its writes', async () => {
    const id = await bench.call('laterBroken', { name: 'broken' })
    expect(await ended(id)).toMatchObject({
      state: 'failed',
      attempts: 1,
      lastErrorCode: 'FUNCTION_FAILED',
    })
    expect(await bench.call('marks', { name: 'broken' })).toBe(0)
  })

  test('a canceled Mutation does not run, and only the first cancellation counts', async () => {
    const id = await bench.call('later', { name: 'canceled', seconds: 3_600 })
    expect(await bench.call('cancel', { id })).toBe(true)
    expect(await bench.call('cancel', { id })).toBe(false)
    const shown = (await bench.call('get', { id })) as ReadonlyMap<string, Value>
    expect(shown.get('state')).toBe('canceled')
  })

  test('a scheduled Mutation is canceled by an operator', async () => {
    const id = (await bench.call('later', { name: 'operator', seconds: 3_600 })) as string
    const canceled = { work: { state: 'canceled' }, hasChanged: true }
    expect(await bench.engine.scheduler.cancel(id)).toMatchObject(canceled)
    expect(await bench.engine.scheduler.cancel(id)).toMatchObject({ hasChanged: false })
    expect(await bench.call('cancel', { id })).toBe(false)
  })

  test.each([
    ['query', /is a Query/],
    ['absent', /there is no Function/],
    ['arguments', /must be a string/],
    ['identity', /requires a user/],
    ['delay', /the delay is an object/],
    ['nothing', /the delay is an object/],
    ['document', /declares no table/],
    ['many', /LIMIT_EXCEEDED|limit/],
  ])('fails the call that schedules it wrongly: %s', async (way, rule) => {
    const failure = await bench.call('bad', { way }).catch((error: unknown) => error)
    const { message, detail = '', code } = failure as Error & { detail?: string; code: string }
    expect(`${code} ${message} ${detail}`).toMatch(rule)
  })

  test('a Mutation cannot be scheduled by a Query', async () => {
    await expect(bench.call('inQuery')).rejects.toMatchObject({
      detail: expect.stringContaining('make the Function a mutation'),
    })
  })
})

test('a race of cancel against the start has one winner', { tags: ['slow'] }, async () => {
  for (let i = 0; i < 20; i++) {
    const name = `race ${i}`
    const id = (await bench.call('later', { name, seconds: 0.01 })) as string
    const prevented = await bench.call('cancel', { id })
    const { state } = await ended(id)
    expect(state).toBe(prevented ? 'canceled' : 'succeeded')
    expect(await bench.call('marks', { name })).toBe(prevented ? 0 : 1)
  }
})

test('an Action counts what it and its Mutations schedule, and its work runs', async () => {
  const { release, engine } = bench
  const definition = release.functions.get('f.plan')!
  const context = { requestId: 'req_test', invocationId: 'ivc_test' }
  const values = new Map([['name', 'plan']])
  const request = { release, definition, arguments: values, principal: null, context }
  const outcome = await engine.action(request)
  const resultText = '{"type":"boolean","value":true}'
  expect(outcome).toMatchObject({ resultText, schedulesCreated: 4 })
  const works = (await engine.scheduler.list(null, 1_000)).items.slice(-4)
  const [, act, fails, mark] = await Promise.all(works.map((work) => ended(work.scheduledId)))
  expect(act).toMatchObject({ function: 'f.act', state: 'succeeded', attempts: 1 })
  expect(fails).toMatchObject({ state: 'failed', attempts: 1, lastErrorCode: 'FUNCTION_FAILED' })
  expect(mark).toMatchObject({ function: 'f.mark', state: 'succeeded' })
  expect(await bench.call('marks', { name: 'plan' })).toBe(3)
})

test('an Action that declares retry is attempted until it succeeds', async () => {
  const id = await bench.call('planFlaky', { name: 'flaky' })
  expect(await ended(id)).toMatchObject({ state: 'succeeded', attempts: 3, lastErrorCode: null })
  expect(await bench.call('marks', { name: 'flaky' })).toBe(3)
})

test('pages of the list follow each other in the order of the IDs', async () => {
  const all = (await bench.engine.scheduler.list(null, 1_000)).items.map((work) => work.scheduledId)
  expect(all).toEqual(all.toSorted())
  const paged: string[] = []
  for (let after: string | null = null, first = true; first || after !== null; first = false) {
    const page = await bench.engine.scheduler.list(after, 3)
    paged.push(...page.items.map((work) => work.scheduledId))
    after = page.nextId
  }
  expect(paged).toEqual(all)
})

test('the counts of unfinished work follow the commits', async () => {
  const { scheduler } = bench.engine
  await expect.poll(() => scheduler.pendingOf(bench.release.releaseId)).not.toBeNull()
  const before = scheduler.pendingOf(bench.release.releaseId)!
  const id = (await bench.call('later', { name: 'counted', seconds: 3_600 })) as string
  expect(scheduler.pendingOf(bench.release.releaseId)).toBe(before + 1)
  await scheduler.cancel(id)
  expect(scheduler.pendingOf(bench.release.releaseId)).toBe(before)
})

describe('an Action that was running when the server ended', () => {
  const work = (name: string): WorkFields => ({
    function: `f.${name}`,
    kind: 'action',
    releaseId: bench.release.releaseId,
    argumentsText: `{"name":"${name} left"}`,
    source: 'function',
    cron: null,
    dueAtMicros: 0n,
  })

  /** Stores running work as a server leaves it that is killed, then starts the scheduler again. */
  async function recovered(name: string): Promise<ScheduledSummary> {
    const id = await bench.engine.documents.change(async (transaction) => {
      const inserted = await insertWork(transaction, work(name))
      await startWork(transaction, (await readWork(transaction, inserted))!)
      return inserted
    })
    bench.engine.scheduler.start({ load: async () => bench.release, admits: () => true })
    return ended(id)
  }

  test('fails without being run again', async () => {
    expect(await recovered('act')).toMatchObject({
      state: 'failed',
      attempts: 1,
      lastErrorCode: 'RESULT_UNCERTAIN',
    })
    expect(await bench.call('marks', { name: 'act left' })).toBe(0)
  })

  test('the Action is attempted again if it declares retry', async () => {
    expect(await recovered('flaky')).toMatchObject({ state: 'succeeded', attempts: 4 })
    expect(await bench.call('marks', { name: 'flaky left' })).toBe(3)
  })
})
