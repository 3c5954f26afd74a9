/**
 * Crons of the compiled server and client: declared, listed, run and disabled.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, type Json, mutation, string } from '../application.ts'
import { argv } from '../argv.ts'

let app: Application

const CRONS = `
import { cronJobs } from 'svc'
import { api, internal } from './_generated/api'
const call = { function: api.channels.create, arguments: { name: 'ticks', author: 'cron' } }
export default cronJobs({
  digest: { schedule: '0 7 * * mon-fri', timeZone: 'Europe/Rome', ...call },
  slow: { every: { days: 1 }, function: internal.slow.wait, arguments: {} },
  tick: { every: { seconds: 1 }, ...call },
})
`
/**
 * An Action that runs until a document says so, and then for longer than a shutdown that does not
 * wait for it.
 */
const SLOW = `
import { internalAction } from 'svc'
import { api } from '../_generated/api'
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))
export const wait = internalAction({
  handler: async (ctx) => {
    while (!(await ctx.runQuery(api.channels.list)).some(({ name }) => name === 'end')) {
      await pause(50)
    }
    await pause(3_000)
  },
})
`

beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'crons.ts'), CRONS)
    writeFileSync(join(workspace, 'functions/slow.ts'), SLOW)
  })
})
afterAll(() => app?.installation.dispose())

type Item = Record<string, unknown>
const crons = (args: readonly string[]): Promise<Json> =>
  app.svc(argv`crons ${args} --remote --root ${app.installation.productRoot}`)
const listed = async () => (await crons(argv`list`)).crons as readonly Item[]

test('Crons run at their times, and a disabled one does not', async () => {
  await expect.poll(async () => (await listed())[2]!.lastRunAtMicros).toMatch(/^\d+$/)
  const [digest, , tick] = await listed()
  expect(digest).toMatchObject({ name: 'digest', timeZone: 'Europe/Rome', activation: 'enabled' })
  const next = new Date(Number(digest!.nextRunAtMicros) / 1_000)
  const local = next.toLocaleTimeString('sv-SE', { timeZone: 'Europe/Rome' })
  expect([local, tick!.every]).toEqual(['07:00:00', { milliseconds: 1_000 }])
  const disabled = await crons(argv`disable tick`)
  expect(disabled).toMatchObject({ activation: 'disabled', nextRunAtMicros: null })
  const work = await crons(argv`run digest`)
  expect(work).toMatchObject({ function: 'channels.create', source: 'cron' })
})

test('an orderly stop lets a scheduled Action end, whose work cannot be repeated', async () => {
  const { scheduledId } = await crons(argv`run slow`)
  const found = async (): Promise<Item> => {
    const list = argv`scheduled list --remote --root ${app.installation.productRoot}`
    const { items } = await app.svc(list)
    return items.find((item: Item) => item.scheduledId === scheduledId)
  }
  await expect.poll(async () => (await found()).state, { timeout: 60_000 }).toBe('running')
  const end = {
    function: 'channels.create',
    arguments: { name: string('end'), author: string('test') },
  }
  expect((await mutation(app, end)).status).toBe(200)
  await app.restart('stop')
  expect(await found()).toMatchObject({ state: 'succeeded', lastErrorCode: null })
})
