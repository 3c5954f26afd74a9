/** Crons of the compiled server and client: declared, listed, run and disabled. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, type Json } from '../application.ts'

let app: Application

const CRONS = `
import { cronJobs } from 'svc'
import { api } from './_generated/api'
const call = { function: api.channels.create, arguments: { name: 'ticks', author: 'cron' } }
export default cronJobs({
  digest: { schedule: '0 7 * * mon-fri', timeZone: 'Europe/Rome', ...call },
  tick: { every: { seconds: 1 }, ...call },
})
`

beforeAll(async () => {
  app = await application((workspace) => writeFileSync(join(workspace, 'crons.ts'), CRONS))
})
afterAll(() => app?.installation.dispose())

type Item = Record<string, unknown>
const crons = (...args: string[]): Promise<Json> =>
  app.svc(['crons', ...args, '--remote', '--root', app.installation.productRoot])
const listed = async () => (await crons('list')).crons as readonly Item[]

test('Crons run at their times, and a disabled one does not', async () => {
  await expect
    .poll(async () => (await listed())[1]!.lastRunAtMicros, { timeout: 20_000 })
    .toMatch(/^\d+$/)
  const [digest, tick] = await listed()
  expect(digest).toMatchObject({ name: 'digest', timeZone: 'Europe/Rome', activation: 'enabled' })
  const next = new Date(Number(digest!.nextRunAtMicros) / 1_000)
  const local = next.toLocaleTimeString('sv-SE', { timeZone: 'Europe/Rome' })
  expect([local, tick!.every]).toEqual(['07:00:00', { milliseconds: 1_000 }])
  const disabled = await crons('disable', 'tick')
  expect(disabled).toMatchObject({ activation: 'disabled', nextRunAtMicros: null })
  const work = await crons('run', 'digest')
  expect(work).toMatchObject({ function: 'channels.create', source: 'cron' })
})
