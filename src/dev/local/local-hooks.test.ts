/** Hooks of `svc dev`: their URLs, and deliveries to a Workspace with its real code. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'
import { hmac } from '../../system/digests.ts'

const FUNCTIONS = `
import { internalMutation, query, v } from 'svc'
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { id, amount } = delivery.json as { id: string; amount: number }
    const text = [id, amount * 2, delivery.method, delivery.path, delivery.body.length].join(' ')
    await ctx.db.insert('notes', { text })
  },
})
export const texts = query({
  clients: ['public'], returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
`
const http = (path: string) => `
import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
  stripe: hook({
    path: '${path}',
    verify: signature.stripe({ secret: 'STRIPE_WEBHOOK' }),
    once: (delivery) => (delivery.json as { id: string }).id,
    handler: internal.events.onEvent,
  }),
})
`
const SECRET = 'whsec_of_this_test'

let dev: LocalDevelopment
beforeAll(async () => {
  dev = new LocalDevelopment()
  dev.write('functions/events.ts', FUNCTIONS)
  dev.write('http.ts', http('/stripe'))
  await dev.start()
})
afterAll(() => dev.dispose())

const texts = async (): Promise<string> => JSON.stringify(await dev.call('events.texts'))

function deliver(url: string, body: string, secret = SECRET): Promise<Response> {
  const seconds = Math.floor(Date.now() / 1_000)
  const digest = hmac('sha256', secret, `${seconds}.`, body).toString('hex')
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'stripe-signature': `t=${seconds},v1=${digest}`,
    },
    body,
  })
}

test('hooks are mounted from the first save on, and each event is handled once', async () => {
  const { hooks } = await dev.next('hooks', () => true, 0)
  expect(hooks).toEqual([
    {
      name: 'stripe',
      methods: ['POST'],
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1\/http\/dev\/stripe$/),
      function: 'events.onEvent',
      verify: 'stripe',
    },
  ])
  const { url } = hooks[0]!
  const body = '{"id":"evt_1","amount":1.5}'
  // Without the secret, the service tries again later.
  expect((await deliver(url, body)).status).toBe(503)
  const saved = dev.events.length
  dev.write('.env.local', `STRIPE_WEBHOOK=${SECRET}\n`)
  await dev.next('configuration', ({ set }) => set.some(({ kind }) => kind === 'secret'), saved)
  const before = dev.events.length
  const first = await deliver(url, body)
  expect(first.status).toBe(202)
  await dev.next('ran', (run) => run.function === 'events.onEvent', before)
  const again = await deliver(url, '{"id":"evt_1","amount":7}')
  const idOf = async (response: Response) => (await response.json()).deliveryId
  expect(await idOf(again)).toBe(await idOf(first))
  expect((await deliver(url, body, 'whsec_other')).status).toBe(401)
  expect(await texts()).toContain('evt_1 3 POST /stripe 27')
  expect((await texts()).match(/evt_1/g)).toHaveLength(1)
})

test('a save that moves a hook reports its new URL', async () => {
  const before = dev.events.length
  dev.write('http.ts', http('/payments/stripe'))
  const { hooks } = await dev.next('hooks', () => true, before)
  expect(hooks[0]!.url).toMatch(/\/v1\/http\/dev\/payments\/stripe$/)
  const response = await deliver(hooks[0]!.url, '{"id":"evt_2","amount":1}')
  expect(response.status).toBe(202)
  await dev.next('ran', (run) => run.function === 'events.onEvent', before)
})
