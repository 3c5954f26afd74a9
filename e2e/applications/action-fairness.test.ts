/**
 * One Application Key cannot keep the Actions of another from running. 200 Actions of one key sleep
 * on the compiled server while another key calls an Action.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Application, action, application, type Json } from '../application.ts'
import { argv } from '../argv.ts'

const ATTACK_CALLS = 200
/** Half of all Actions, which is the share that one key may have: running and waiting. */
const RUNNING = 64
const WAITING = 128

const FUNCTIONS = `
import { action, v } from 'svc'
import { api } from '../_generated/api'

export const sleep = action({
  clients: ['confidential'],
  returns: v.string(),
  handler: async () => {
    await new Promise((resolve) => setTimeout(resolve, 500_000))
    return 'slept'
  },
})
export const quick = action({
  clients: ['confidential'],
  returns: v.string(),
  handler: async () => 'quick',
})
export const outer = action({
  clients: ['confidential'],
  returns: v.string(),
  handler: (ctx) => ctx.runAction(api.sleeping.quick),
})
`

let app: Application
let otherKey = ''
const leaving = new AbortController()

beforeAll(async () => {
  app = await application((workspace) => {
    writeFileSync(join(workspace, 'functions/sleeping.ts'), FUNCTIONS)
  })
  otherKey = (
    await app.svc(argv`
      credentials create --remote --root ${app.installation.productRoot}
      --client ${app.clientId} --name two --scopes action,mutation,query
    `)
  ).key
})
afterAll(async () => {
  leaving.abort()
  await app?.installation.dispose()
})

interface Rejected {
  readonly status: number
  readonly retryAfter: string | null
  readonly error: Json
}

const rejected: Rejected[] = []
let answered = 0

/** Calls the Action that sleeps; the call is aborted at the end of the test. */
async function sleep(): Promise<void> {
  const target = 'channel:production'
  const call = { version: 1, target, function: 'sleeping.sleep' }
  const response = await fetch(`${app.server.application}/v1/action`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-key': app.key },
    body: JSON.stringify({ ...call, arguments: { type: 'object', value: [] } }),
    signal: leaving.signal,
  })
  const { status, headers } = response
  const { error } = (await response.json()) as { error: Json }
  if (status === 200) answered += 1
  else rejected.push({ status, retryAfter: headers.get('retry-after'), error })
}

const gauges = async () => {
  const { actionsRunning, actionsWaiting } = (
    await app.svc(argv`metrics --remote --root ${app.installation.productRoot}`)
  ).gauges
  return [Number(actionsRunning), Number(actionsWaiting)]
}

test('200 sleeping Actions of one key leave room for the Actions of another key', async () => {
  for (let i = 0; i < ATTACK_CALLS; i++) void sleep().catch(() => undefined)
  // Actions beyond the queue are rejected at once, so all have arrived by then.
  await expect.poll(() => rejected.length).toBeGreaterThanOrEqual(ATTACK_CALLS - RUNNING - WAITING)
  const startedMillis = performance.now()
  for (const name of ['sleeping.quick', 'sleeping.outer']) {
    const { status, body } = await action(app, { function: name, key: otherKey })
    expect([status, body.error?.code]).toEqual([200, undefined])
  }
  console.log(`two Actions of the other key: ${Math.round(performance.now() - startedMillis)} ms`)
  expect(await gauges()).toEqual([RUNNING, expect.any(Number)])
})

test('Actions that wait for ten seconds are rejected as busy and may be retried', async () => {
  const options = { timeout: 60_000, interval: 200 }
  await expect.poll(() => rejected.length, options).toBe(ATTACK_CALLS - RUNNING)
  for (const { status, retryAfter, error } of rejected) {
    expect([status, error.code, error.retryable]).toEqual([503, 'BUSY', true])
    expect(Number(retryAfter)).toBeGreaterThan(0)
  }
  expect(await gauges()).toEqual([RUNNING, 0])
  expect(answered).toBe(0)
})

test('Actions whose callers disconnect make room at once', async () => {
  leaving.abort()
  await expect.poll(gauges).toEqual([0, 0])
  expect((await action(app, { function: 'sleeping.quick' })).status).toBe(200)
})
