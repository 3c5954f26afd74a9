/** Goal: Actions of one credential leave room for those of others. Method: a real engine. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'
import type { Value } from '../../value/values.ts'

/** Half of the Actions that may run at one time. */
const SHARE = 64
/** Actions of its half that others call: three are those that call them. */
const ROOM = SHARE - 3
const NAPS = 96

const FUNCTIONS = `
  open: mutation((ctx) => ctx.db.insert('doors', {})),
  isOpen: query(async (ctx) => (await ctx.db.table('doors').scan().collect()).length > 0),
  waitAndCall: action(async (ctx) => {
    while (!await ctx.runQuery(ref('query', 'isOpen'))) {
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    return ctx.runAction(ref('action', 'quick'))
  }),
  quick: action(() => 'quick'),
  sleep: action(() => new Promise((resolve) => setTimeout(resolve, 500_000))),
  nap: action(async () => {
    // The others are rejected at once. If they waited instead, they would nap too.
    for (let i = 0; i < 600 && rejected < ${NAPS - ROOM}; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }),
  callNaps: action((ctx) => {
    const nap = () => ctx.runAction(ref('action', 'nap')).then(() => 'done', ({ code }) => {
      rejected += 1
      return code
    })
    return Promise.all(Array.from({ length: ${NAPS / 3} }, nap))
  }),
  callMany: action(async (ctx) => {
    const calls = Array.from({ length: 3 }, () => ctx.runAction(ref('action', 'callNaps')))
    return (await Promise.all(calls)).flat()
  }),`

let bench: EngineBench
beforeAll(async () => {
  const schema = 'tables({ doors: { fields: {}, indexes: [] } })'
  // All must fit into one runner: a second one may not start.
  const limits = { actionRunners: 1 }
  bench = await engineBench(FUNCTIONS, { schema, limits, prelude: 'let rejected = 0;' })
})
afterAll(() => bench.close())

const counts = () => {
  const { actionsRunning, actionsWaiting } = bench.metrics.collect().gauges
  return [actionsRunning, actionsWaiting]
}

function calls(count: number, name: string, credentialId: string): Promise<Value>[] {
  return Array.from({ length: count }, () => bench.call(name, {}, { credentialId }))
}

test('every Action that runs may call an Action, and one that waits runs then', async () => {
  const running = ['a', 'b'].flatMap((credential) => calls(SHARE, 'waitAndCall', credential))
  const waiting = calls(1, 'quick', 'c')
  await expect.poll(counts).toEqual([2 * SHARE, 1])
  await bench.call('open')
  expect(new Set(await Promise.all([...running, ...waiting]))).toEqual(new Set(['quick']))
  expect(counts()).toEqual([0, 0])
})

test('one credential has half of them, and a caller that leaves makes room', async () => {
  const [first, others] = [new AbortController(), new AbortController()]
  const credentialId = 'a'
  const sleeping = Array.from({ length: SHARE }, (_, i) => {
    const { signal } = i === 0 ? first : others
    return bench.call('sleep', {}, { credentialId, signal }).catch(({ code }) => code)
  })
  const left = new AbortController()
  const leaving = bench.call('sleep', {}, { credentialId, signal: left.signal })
  const waiting = calls(1, 'quick', credentialId)
  expect(await Promise.all(calls(1, 'quick', 'b'))).toEqual(['quick'])
  expect(counts()).toEqual([SHARE, 2])
  left.abort()
  await expect(leaving).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  expect(counts()).toEqual([SHARE, 1])
  first.abort()
  expect(await Promise.all(waiting)).toEqual(['quick'])
  others.abort()
  expect(new Set(await Promise.all(sleeping))).toEqual(new Set(['UNAVAILABLE']))
})

test('Actions that Actions call never wait for one another', async () => {
  const [ended] = await Promise.all(calls(1, 'callMany', 'a'))
  const codes = ended as string[]
  expect(codes.filter((code) => code === 'done')).toHaveLength(ROOM)
  expect(new Set(codes)).toEqual(new Set(['done', 'BUSY']))
})
