/** The guide to hooks: its samples are one Workspace, to which the services deliver events. */
import { spawnSync } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runBuild } from '../src/dev/building/commands.ts'
import { startTypeChecker } from '../src/dev/type-check/type-check.ts'
import { hmac } from '../src/system/digests.ts'
import { describeHere } from '../testing/describe-here.ts'
import { LocalDevelopment } from '../testing/development/local-development.ts'
import { codeBlocks } from '../testing/markdown/markdown.ts'
import { workspaceSamples } from '../testing/markdown/workspace-samples.ts'
import { NODE_PATH } from '../testing/servers/node-path.ts'
import { kitWorkspace } from '../testing/test-kit/workspaces.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/hooks.md'), 'utf8')
const BLOCKS = codeBlocks(GUIDE)
const EVENT = BLOCKS.find(({ above }) => above === '<!-- sample: stripe -->')!.text
const SECRETS = BLOCKS.find(({ text }) => text.startsWith('STRIPE_WEBHOOK='))!.text
const BUN = join(import.meta.dirname, '../node_modules/.bin/bun')
const TEST = 'tests/hooks.test.ts'
const { [TEST]: sampleTest, ...SAMPLES } = workspaceSamples(GUIDE)
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
  for (const [path, text] of Object.entries(SAMPLES)) dev.write(path, text)
  dev.write('functions/notes.ts', STORED)
  dev.write('.env.local', `${SECRETS}\n`)
  await dev.start()
})
afterAll(() => dev.dispose())

const seconds = String(Math.floor(Date.now() / 1_000))
const sha256 = (key: string, text: string) => hmac('sha256', key, text)
const DELIVERIES = [
  {
    name: 'stripe',
    body: JSON.parse(EVENT),
    sign: (body: string) => {
      const digest = sha256('any-text', `${seconds}.${body}`).toString('hex')
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
      'x-hub-signature-256': `sha256=${sha256('any-text', body).toString('hex')}`,
    }),
    stored: '0123abc',
  },
  {
    name: 'mail',
    body: { type: 'email.bounced', data: { to: ['ada@example.com'] } },
    sign: (body: string) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${sha256('sample', `msg_1.${seconds}.${body}`).toString('base64')}`,
    }),
    stored: 'ada@example.com',
  },
]

test('the samples have correct types', { tags: ['slow'] }, async () => {
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

test('the sample of a test passes', { tags: ['slow'] }, () => {
  // `bun test` has the functions of Vitest under the same names, and starts faster.
  const text = sampleTest!.replace("from 'vitest'", "from 'bun:test'")
  const workspace = kitWorkspace('empty', { ...SAMPLES, [TEST]: text })
  try {
    const { status, stdout, stderr } = spawnSync(BUN, ['test', '--timeout', '60000', `./${TEST}`], {
      cwd: workspace.directory,
      encoding: 'utf8',
      env: { ...process.env, PATH: NODE_PATH, SVC_EXECUTABLE: workspace.executable },
    })
    expect(stdout + stderr).toMatch(/^ 1 pass$/m)
    expect(status).toBe(0)
  } finally {
    workspace.remove()
  }
})
