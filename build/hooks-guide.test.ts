/** The guide to hooks: its samples are one Workspace, to which the services deliver events. */
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBuild } from '../src/dev/building/commands.ts'
import { startTypeChecker } from '../src/dev/type-check/type-check.ts'
import { hmac } from '../src/system/digests.ts'
import { describeHere } from '../testing/describe-here.ts'
import { LocalDevelopment } from '../testing/development/local-development.ts'
import { workspaceSamples } from '../testing/markdown/workspace-samples.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/hooks.md'), 'utf8')
/** Lists what the handlers stored; `functions/notes.ts` is that of another schema. */
const STORED = `
import { query, v } from 'svc'
export const stored = query({
  clients: ['public'],
  returns: v.array(v.string()),
  handler: async (ctx) => {
    const payments = await ctx.db.table('payments').scan().collect()
    const pushes = await ctx.db.table('pushes').scan().collect()
    const bounces = await ctx.db.table('bounces').scan().collect()
    return [
      ...payments.map(({ intent, cents }) => intent + ' ' + cents),
      ...pushes.map(({ commit }) => commit),
      ...bounces.map(({ address }) => address),
    ]
  },
})
`

let dev: LocalDevelopment
beforeAll(async () => {
  dev = new LocalDevelopment()
  for (const [path, text] of Object.entries(workspaceSamples(GUIDE))) dev.write(path, text)
  dev.write('functions/notes.ts', STORED)
  const secrets = ['STRIPE_WEBHOOK=whsec_s', 'GITHUB_WEBHOOK=g', 'MAIL_WEBHOOK=whsec_bWFpbA==']
  dev.write('.env.local', `${secrets.join('\n')}\n`)
  await dev.start()
})
afterAll(() => dev.dispose())

const seconds = String(Math.floor(Date.now() / 1_000))
const sha256 = (key: string, text: string) => hmac('sha256', key, text)
const DELIVERIES = [
  {
    name: 'stripe',
    body: {
      id: 'evt_1',
      type: 'payment_intent.succeeded',
      data: { object: { id: 'pi_1', amount: 250 } },
    },
    sign: (body: string) => {
      const digest = sha256('whsec_s', `${seconds}.${body}`).toString('hex')
      return { 'stripe-signature': `t=${seconds},v1=${digest}` }
    },
    stored: 'pi_1 250',
  },
  {
    name: 'github',
    body: { after: '0123abc' },
    sign: (body: string) => ({
      'x-github-event': 'push',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': `sha256=${sha256('g', body).toString('hex')}`,
    }),
    stored: '0123abc',
  },
  {
    name: 'mail',
    body: { type: 'email.bounced', data: { to: ['ada@example.com'] } },
    sign: (body: string) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${sha256('mail', `msg_1.${seconds}.${body}`).toString('base64')}`,
    }),
    stored: 'ada@example.com',
  },
]

test('the samples have correct types', async () => {
  const workspaceDirectory = realpathSync(dev.workspace)
  const { build } = await runBuild({ workspaceDirectory, describe: describeHere, startTypeChecker })
  expect(build.description.http).toHaveLength(DELIVERIES.length)
})

test.each(DELIVERIES)('the handler of $name stores an event once', async (delivery) => {
  const { hooks } = await dev.next('hooks', () => true, 0)
  const { url, function: callee } = hooks.find(({ name }) => name === delivery.name)!
  const body = JSON.stringify(delivery.body)
  const headers = { 'content-type': 'application/json', ...delivery.sign(body) }
  const before = dev.events.length
  const statuses: number[] = []
  for (let i = 0; i < 2; i++) {
    statuses.push((await fetch(url, { method: 'POST', headers, body })).status)
  }
  expect(statuses).toEqual([202, 202])
  await dev.next('ran', (run) => run.function === callee, before)
  const stored = JSON.stringify(await dev.call('notes.stored'))
  expect(stored.split(`"${delivery.stored}"`)).toHaveLength(2)
})
