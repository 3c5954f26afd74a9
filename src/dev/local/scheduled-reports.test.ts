/** Reports of `svc dev` about Crons and scheduled work that are due or have run. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EventOf, LocalDevelopment } from '../../../testing/development/local-development.ts'

const functions = (version: number): string => `
import { internalAction, internalMutation, mutation, query, v } from 'svc'
import { internal } from '../_generated/api'
const clients = ['public'] as const
export const version = query({ clients, returns: v.string(), handler: () => '${version}' })
export const tick = internalMutation({
  handler: async (ctx) => { await ctx.db.insert('notes', { text: 'tick ${version}' }) },
})
export const fail = internalAction({
  retry: { maximumAttempts: 2, backoff: { initial: { milliseconds: 1 } } },
  handler: () => { throw new Error('no') },
})
export const later = mutation({
  clients,
  handler: async (ctx) => {
    for (const seconds of [3600, 60]) await ctx.scheduler.runAfter({ seconds }, internal.notes.tick)
    await ctx.scheduler.runAfter({ seconds: 0 }, internal.notes.fail)
  },
})
export const texts = query({
  clients, returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
`

const crons = (...names: readonly string[]): string => `
import { cronJobs } from 'svc'
import { internal } from './_generated/api'
export default cronJobs({
  ${names.map((name) => `${name}: { every: { seconds: 1 }, function: internal.notes.tick }`).join()}
})
`

let dev: LocalDevelopment
beforeAll(async () => {
  dev = new LocalDevelopment()
  dev.write('functions/notes.ts', functions(1))
  dev.write('crons.ts', crons('pulse'))
  await dev.start()
})
afterAll(() => dev.dispose())

const texts = async (): Promise<string> => JSON.stringify(await dev.call('notes.texts'))

test('a Cron runs from the first save on, and its runs name the next time', {
  tags: ['slow'],
}, async () => {
  const { crons } = await dev.next('crons', () => true, 0)
  expect(crons).toEqual([
    {
      name: 'pulse',
      function: 'notes.tick',
      times: 'every 1 s',
      nextRunAtMicros: expect.stringMatching(/^\d{16}$/),
    },
  ])
  const run = await dev.next('ran')
  expect(run).toMatchObject({ function: 'notes.tick', cron: 'pulse', outcome: 'ok' })
  expect(BigInt(run.nextRunAtMicros!)).toBeGreaterThan(BigInt(crons[0]!.nextRunAtMicros!))
  expect(await texts()).toContain('tick 1')
})

test('a save runs at the next time of a Cron, which is not reported again', {
  tags: ['slow'],
}, async () => {
  const from = dev.events.length
  dev.write('functions/notes.ts', functions(2))
  await dev.next('served', () => true, from)
  const replaced = dev.events.length
  await dev.next('ran', ({ cron }) => cron === 'pulse', replaced)
  await expect.poll(texts).toContain('tick 2')
  const since = dev.events.slice(from)
  expect(since.filter(({ event }) => event === 'crons' || event === 'notice')).toEqual([])
  const failed = since.filter((event) => event.event === 'ran' && event.outcome !== 'ok')
  expect(failed).toEqual([])
})

test('scheduled work is reported with its due time, and so are its attempts', async () => {
  const from = dev.events.length
  const before = BigInt(Date.now()) * 1_000n
  await dev.call('notes.later', {}, { kind: 'mutation' })
  const ticks = await dev.next('due', (due) => due.function === 'notes.tick', from)
  expect(ticks.count).toBe(2)
  const seconds = Number(BigInt(ticks.dueAtMicros) - before) / 1e6
  expect(seconds).toBeGreaterThan(59)
  expect(seconds).toBeLessThan(600)
  const isLast = (run: EventOf<'ran'>) => run.function === 'notes.fail' && !run.isRepeated
  const last = await dev.next('ran', isLast, from)
  const ofFail = dev.events
    .slice(from)
    .filter((event) => 'function' in event && event.function === 'notes.fail')
    .flatMap((event) => {
      if (event.event === 'due') return ['due']
      return event.event === 'ran' ? [`${event.outcome} ${event.isRepeated}`] : []
    })
  expect(ofFail).toEqual(['due', 'due', 'FUNCTION_FAILED true', 'FUNCTION_FAILED false'])
  expect(last.cron).toBeNull()
})

test('Crons that are added and removed are reported', { tags: ['slow'] }, async () => {
  const added = dev.next('crons')
  dev.write('crons.ts', crons('pulse', 'second'))
  expect((await added).crons.map(({ name }) => name)).toEqual(['pulse', 'second'])
  const removed = dev.next('crons')
  dev.write('crons.ts', crons())
  expect((await removed).crons).toEqual([])
})
