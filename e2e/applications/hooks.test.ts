/** Deliveries of another service to the compiled server, which is killed meanwhile. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hmac } from '../../src/system/digests.ts'
import { type Application, application, type Json, query } from '../application.ts'
import { argv } from '../argv.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const EVENTS = 60
/** Each run of the handler adds a channel, so that a second run would be seen. */
const FUNCTIONS = `
import { internalMutation, query, v } from 'svc'
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { id } = delivery.json as { id: string }
    await ctx.db.insert('channels', { name: id + ' ' + crypto.randomUUID() })
  },
})
export const events = query({
  clients: ['confidential'],
  returns: v.array(v.string()),
  handler: async (ctx) => {
    const found = await ctx.db.table('channels').scan().collect()
    return found.map(({ name }) => name.split(' ')[0] ?? '')
  },
})
`
const HTTP = `
import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  events: hook({
    path: '/events',
    verify: signature.standardWebhooks({ secret: 'WEBHOOK' }),
    once: (delivery) => delivery.headers['webhook-id'] ?? '',
    handler: internal.hooks.onEvent,
  }),
})
`

let app: Application
let path = ''
beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/hooks.ts'), FUNCTIONS)
    writeFileSync(join(workspace, 'http.ts'), HTTP)
  })
  const remote = argv`--remote --root ${app.installation.productRoot}`
  await app.svc(argv`config set WEBHOOK --secret --value-env SECRET ${remote}`, { SECRET })
  const mounted = await app.svc(
    argv`http mount main --target channel:production --secret-path --rate 1000 ${remote}`,
  )
  path = `${mounted.path}/${mounted.token}/events`
})
afterAll(() => app?.installation.dispose())

/** Sends an event; returns null if the server does not answer. */
async function deliver(id: string, secret = SECRET): Promise<Json | null> {
  const body = JSON.stringify({ id })
  const time = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = hmac('sha256', key, `${id}.${time}.${body}`).toString('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${signature}`,
  }
  try {
    const url = `${app.server.application}${path}`
    const response = await fetch(url, { method: 'POST', headers, body })
    return { ...(await response.json()), status: response.status }
  } catch {
    return null
  }
}

/** Sends an event until it is accepted, as services do; returns its delivery. */
async function deliverUntilAccepted(id: string): Promise<string> {
  for (;;) {
    const answer = await deliver(id)
    if (answer?.status === 202) return answer.deliveryId
    if (answer !== null && answer.status < 500) throw new Error(JSON.stringify(answer))
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function handled(): Promise<readonly string[]> {
  const { body } = await query(app, { function: 'hooks.events', arguments: {} })
  return body.result.value.map(({ value }: Json) => value)
}

test('each event has one effect, though it is sent thrice and the server is killed', async () => {
  const ids = Array.from({ length: EVENTS }, (_, i) => `evt_${String(i).padStart(3, '0')}`)
  const sending = ids.flatMap((id) => [1, 2, 3].map(() => deliverUntilAccepted(id)))
  for (let kills = 0; kills < 2; kills++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    await app.restart('kill')
  }
  const deliveries = await Promise.all(sending)
  expect(new Set(deliveries).size).toBe(EVENTS)
  await expect.poll(async () => (await handled()).length, { timeout: 60_000 }).toBe(EVENTS)
  expect((await handled()).toSorted()).toEqual(ids)
  // Redelivered after a restart, an event still has its first delivery.
  await app.restart('stop')
  expect(await deliverUntilAccepted('evt_007')).toBe(deliveries[7 * 3])
  expect(await handled()).toHaveLength(EVENTS)
  const wrong = await deliver('evt_new', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx')
  expect(wrong).toMatchObject({ status: 401, error: { code: 'SIGNATURE_INVALID' } })
})
