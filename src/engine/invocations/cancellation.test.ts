/** Callers that disconnect before their call ends. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type EngineBench, engineBench } from '../../../testing/engines.ts'

const SCHEMA = `tables({ notes: { fields: {}, indexes: [] } })`
let bench: EngineBench
beforeAll(async () => {
  bench = await engineBench(
    `
    reads: query(async (ctx) => {
      await ctx.db.table('notes').scan().first()
      return 'done'
    }, { arguments: { by: { type: 'int64' } } }),
    writes: mutation(async (ctx) => {
      await ctx.db.table('notes').scan().first()
      await ctx.db.insert('notes', {})
    }),
    count: query(async (ctx) => (await ctx.db.table('notes').scan().collect()).length),`,
    { schema: SCHEMA },
  )
  // Otherwise a caller may disconnect before the preparation ends and its call starts.
  await bench.engine.warm(bench.release)
})
afterEach(() => void vi.restoreAllMocks())
afterAll(() => bench.close())

/** Longer than the runner takes to notice that a caller has left. */
const NOTICED_MILLIS = 200

/** Returns options of a call whose caller leaves at its read, which is answered after `noticed`. */
function disconnecting(noticed: () => Promise<unknown> = () => delay(NOTICED_MILLIS)) {
  const abort = new AbortController()
  const range = bench.store.range.bind(bench.store)
  vi.spyOn(bench.store, 'range').mockImplementationOnce(async (request) => {
    abort.abort()
    await noticed()
    return range(request)
  })
  return { signal: abort.signal }
}

test('a Query stops when its only caller disconnects', async () => {
  const { promise: never } = Promise.withResolvers<never>()
  const only = bench.call(
    'reads',
    { by: 1n },
    disconnecting(() => never),
  )
  await expect(only).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

test('a Query that several callers share continues when one of them disconnects', async () => {
  const first = bench.call('reads', { by: 2n }, disconnecting())
  const second = bench.call('reads', { by: 2n })
  expect(await second).toBe('done')
  expect(await first).toBe('done')
})

test('a Mutation completes after its caller disconnects', async () => {
  const options = disconnecting()
  await bench.call('writes', {}, options)
  expect(options.signal.aborted).toBe(true)
  expect(await bench.call('count')).toBe(1)
})
