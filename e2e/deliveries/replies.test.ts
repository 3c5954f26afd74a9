/**
 * A service that disconnects while it waits for the result of a handler gives back its wait at
 * once, also where an application process is between it and the process that waits.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { untilHandled } from './campaign.ts'
import { openSocket, requestBytes } from './raw-requests.ts'

/** The handler waits until an event of the other hook has come. */
const FUNCTIONS = `
import { internalAction, internalMutation, internalQuery, v } from 'svc'
import { internal } from '../_generated/api'

export const isReleased = internalQuery({
  arguments: {},
  returns: v.boolean(),
  handler: async (ctx) => (await ctx.db.table('channels').scan().collect()).length > 0,
})
export const onRelease = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx) => {
    await ctx.db.insert('channels', { name: 'released' })
  },
})
export const onHeld = internalAction({
  arguments: { delivery: v.httpDelivery() },
  returns: v.string(),
  handler: async (ctx) => {
    while (!(await ctx.runQuery(internal.replies.isReleased, {}))) {
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
    return 'released'
  },
})
`
const HTTP = `
import { hook, httpRoutes } from 'svc'
import { internal } from './_generated/api'

export default httpRoutes({
  held: hook({ path: '/held', verify: 'none', reply: 'result', handler: internal.replies.onHeld }),
  release: hook({ path: '/release', verify: 'none', handler: internal.replies.onRelease }),
})
`

let app: Application
beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/replies.ts'), FUNCTIONS)
    writeFileSync(join(workspace, 'http.ts'), HTTP)
  })
  await svc(argv`http mount main --target channel:production --rate 1000`)
})
afterAll(() => app?.installation.dispose())

const svc = (args: readonly string[]): Promise<Json> =>
  app.svc(argv`${args} --remote --root ${app.installation.productRoot}`)

async function waits() {
  const { gauges, counters } = await svc(argv`metrics`)
  return {
    waiting: Number(gauges.deliveriesWaiting),
    expired: Number(counters.deliveryWaitsExpired),
  }
}

async function untilWaiting(count: number): Promise<void> {
  await expect.poll(async () => (await waits()).waiting, { timeout: 60_000 }).toBe(count)
}

/** Sends an event, disconnects during the wait, and returns whether the wait ended by that. */
async function endsByDisconnect(): Promise<boolean> {
  const before = (await waits()).expired
  const body = '{"id":"held"}'
  const socket = openSocket(app.server.application!)
  socket.write(requestBytes('/v1/http/main/held', [`Content-Length: ${body.length}`], body))
  await expect
    .poll(async () => {
      const { waiting, expired } = await waits()
      return waiting > 0 || expired > before
    })
    .toBe(true)
  socket.destroy()
  await untilWaiting(0)
  return (await waits()).expired === before
}

test('a service that disconnects gives back its wait before the time of waiting ends', {
  timeout: 300_000,
}, async () => {
  // On a machine that is too slow, the time ends before the service disconnects.
  await expect.poll(endsByDisconnect, { timeout: 240_000 }).toBe(true)
  const body = '{"id":"held"}'
  const send = (path: string, text: string) =>
    fetch(`${app.server.application}/v1/http/main/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    })
  expect((await send('release', '{}')).status).toBe(202)
  await untilHandled({ app, path: '', secrets: { STANDARD: '', GITHUB: '' } })
  // The handler went on, and a repeat has its result.
  const repeat = await send('held', body)
  expect([repeat.status, await repeat.json()]).toEqual([200, 'released'])
})
