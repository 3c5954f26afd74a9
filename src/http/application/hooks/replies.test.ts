/** Hooks that are answered with the result of their handler, through the application origin. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../../testing/gateways.ts'
import {
  handlerManifest,
  hookManifest,
  mount,
  SECRET,
  send,
  setSecret,
} from '../../../../testing/http/hooks.ts'
import {
  KEPT_RESULT_CHARACTERS_MAX,
  SUCCEEDED_CHARACTERS_MAX,
} from '../../../engine/scheduled-work/scheduled-documents.ts'
import { ManualTimers } from '../../../engine/scheduling/timers.ts'
import { WORK_WAIT_MILLIS_MAX } from '../../../engine/scheduling/work-waits.ts'
import { hmac } from '../../../system/digests.ts'
import { realSystem, TestSystem } from '../../../system/system.ts'
import { memoryLog } from '../../../telemetry/log.ts'
import { HTTP_RESPONSE } from '../../../value/http/responses.ts'

const log = memoryLog(realSystem())
const clock = new TestSystem()
const timers = new ManualTimers({ monotonicMillis: () => clock.nowMillis() }, Infinity)
let runs = 0
let onRun: () => unknown = () => ''
const run = () => {
  runs += 1
  return onRun()
}
const TEXT = { type: 'string' } as const
const INPUT = {
  functions: [
    { ...handlerManifest('hooks.forward', 'action'), returns: TEXT },
    { ...handlerManifest('hooks.onEvent'), returns: TEXT },
    { ...handlerManifest('hooks.respond'), returns: HTTP_RESPONSE },
  ],
  tables: [],
  log: log.log,
  timers,
  http: [
    hookManifest('accepted'),
    hookManifest('action', { reply: 'result', function: 'hooks.forward' }),
    hookManifest('long', { reply: 'result', maximumBytes: 10_000 }),
    hookManifest('respond', { reply: 'result', function: 'hooks.respond' }),
    hookManifest('result', { reply: 'result' }),
  ],
  handlers: { 'hooks.forward': run, 'hooks.onEvent': run, 'hooks.respond': run },
}

let gateway: TestGateway
beforeAll(async () => {
  gateway = await openTestGateway(INPUT)
  setSecret(gateway, 'GITHUB', SECRET)
  mount(gateway, 'main')
})
beforeEach(() => {
  runs = 0
  onRun = () => ''
})
afterAll(() => gateway.close())

let count = 0
/** A body that no other delivery has. */
const newBody = () => JSON.stringify({ n: ++count })

/** Holds the handler until the returned function is called. */
function hold(result = ''): () => void {
  const held = Promise.withResolvers<string>()
  onRun = () => held.promise
  return () => held.resolve(result)
}

async function work(deliveryId: unknown) {
  const { items } = await gateway.engine.scheduler.list(null, 1_000)
  return items.find(({ scheduledId }) => scheduledId === deliveryId)
}

describe('the result of the handler', () => {
  for (const route of ['result', 'action']) {
    test(`the result is the answer, also to a repeat: ${route}`, async () => {
      onRun = () => 'challenge'
      const body = newBody()
      const first = await send(gateway, `/main/${route}`, { body })
      expect([first.status, await first.json()]).toEqual([200, 'challenge'])
      expect(first.headers.get('content-security-policy')).toContain('sandbox')
      expect(first.headers.get('cache-control')).toBe('no-store')
      onRun = () => 'another'
      const repeat = await send(gateway, `/main/${route}`, { body })
      expect([repeat.status, await repeat.json()]).toEqual([200, 'challenge'])
      expect(runs).toBe(1)
    })
  }

  test('a repeat has the same answer after the content of the delivery was dropped', async () => {
    onRun = () => 'long'
    const body = JSON.stringify({ n: ++count, text: 'x'.repeat(SUCCEEDED_CHARACTERS_MAX) })
    await send(gateway, '/main/long', { body })
    const { deliveries } = gateway.engine.scheduler
    const query = { mount: 'main', state: null, route: 'long', afterId: null, limit: 1 }
    const { items } = await deliveries.list(query)
    expect(items).toMatchObject([{ hasContent: false, state: 'succeeded' }])
    const repeat = await send(gateway, '/main/long', { body })
    expect([repeat.status, await repeat.json(), runs]).toEqual([200, 'long', 1])
  })

  test('a repeat that arrives while the handler runs gets the same answer', async () => {
    const release = hold('once')
    const body = newBody()
    const both = [1, 2].map(() => send(gateway, '/main/result', { body }))
    await expect.poll(() => runs).toBe(1)
    release()
    for (const response of await Promise.all(both)) expect(await response.json()).toBe('once')
    expect(runs).toBe(1)
  })

  test('v.httpResponse() decides status, headers and body', async () => {
    onRun = () => ({ status: 201, contentType: 'text/plain', body: 'made' })
    const response = await send(gateway, '/main/respond', { body: newBody() })
    expect([response.status, await response.text()]).toEqual([201, 'made'])
    expect(response.headers.get('content-type')).toContain('text/plain')
  })

  test('a handler that says what no response may fails, and runs again for a repeat', async () => {
    onRun = () => ({ contentType: 'text/html', body: '<script>' })
    const body = newBody()
    expect((await send(gateway, '/main/respond', { body })).status).toBe(500)
    const { items } = await gateway.engine.scheduler.list(null, 1_000)
    expect(items.at(-1)).toMatchObject({ state: 'failed', lastErrorCode: 'FUNCTION_FAILED' })
    expect(items.at(-1)!.lastErrorMessage).toContain('the response.contentType')
    onRun = () => ({ body: 'corrected' })
    const repeat = await send(gateway, '/main/respond', { body })
    expect([repeat.status, await repeat.text(), runs]).toEqual([200, 'corrected', 2])
  })

  test('a result that is too long is not kept, and the log says so', async () => {
    onRun = () => 'x'.repeat(KEPT_RESULT_CHARACTERS_MAX)
    const response = await send(gateway, '/main/result', { body: newBody() })
    const { deliveryId } = (await response.json()) as Record<string, unknown>
    expect(response.status).toBe(202)
    expect(await work(deliveryId)).toMatchObject({ state: 'succeeded' })
    expect(log.records()).toContainEqual(
      expect.objectContaining({ event: 'schedule.result_dropped', scheduledId: deliveryId }),
    )
  })
})

describe('a handler that fails', () => {
  for (const route of ['result', 'action']) {
    test(`the service gets 500, and its repeat runs the handler again: ${route}`, async () => {
      onRun = () => {
        throw new Error('a private reason')
      }
      const body = newBody()
      for (let attempt = 1; attempt <= 2; attempt++) {
        const failed = await send(gateway, `/main/${route}`, { body })
        expect([failed.status, runs]).toEqual([500, attempt])
        expect(await failed.text()).not.toContain('private')
      }
      onRun = () => 'corrected'
      const repeat = await send(gateway, `/main/${route}`, { body })
      expect([repeat.status, await repeat.json(), runs]).toEqual([200, 'corrected', 3])
      const { items } = await gateway.engine.scheduler.list(null, 1_000)
      expect(items.at(-1)).toMatchObject({ state: 'succeeded', attempts: 3 })
    })
  }

  test('repeats of a failed delivery that arrive together run it once more', async () => {
    onRun = () => {
      throw new Error('no')
    }
    const body = newBody()
    expect((await send(gateway, '/main/result', { body })).status).toBe(500)
    const release = hold('again')
    const both = [1, 2, 3].map(() => send(gateway, '/main/result', { body }))
    await expect.poll(() => runs).toBe(2)
    release()
    for (const response of await Promise.all(both)) expect(await response.json()).toBe('again')
    expect(runs).toBe(2)
  })

  test('a hook that only accepts does not run it again', async () => {
    onRun = () => {
      throw new Error('no')
    }
    const body = newBody()
    for (let i = 0; i < 2; i++) {
      expect((await send(gateway, '/main/accepted', { body })).status).toBe(202)
      await gateway.engine.scheduler.whenSettled()
    }
    expect(runs).toBe(1)
  })
})

describe('the wait', () => {
  test('a handler of more than 10 seconds is answered with 202, and its repeat later', async () => {
    const release = hold('late')
    const body = newBody()
    const sent = send(gateway, '/main/action', { body })
    await expect.poll(() => runs).toBe(1)
    clock.advance(WORK_WAIT_MILLIS_MAX)
    timers.run()
    expect((await sent).status).toBe(202)
    const { gauges, counters } = gateway.metrics.collect()
    expect([gauges.deliveriesWaiting, counters.deliveryWaitsExpired]).toEqual([0, 1])
    release()
    const repeat = await send(gateway, '/main/action', { body })
    expect([repeat.status, await repeat.json(), runs]).toEqual([200, 'late', 1])
  })

  test('a service that is gone leaves no wait behind', async () => {
    const release = hold()
    const body = newBody()
    const leave = new AbortController()
    const digest = hmac('sha256', SECRET, body).toString('hex')
    const request = new Request('https://app.test/v1/http/main/result', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${digest}` },
      body,
      signal: leave.signal,
    })
    const sent = gateway.application.fetch(request, { peer: 'peer' })
    await expect.poll(() => gateway.engine.scheduler.statistics.waits).toBe(1)
    leave.abort()
    await sent
    expect(gateway.engine.scheduler.statistics.waits).toBe(0)
    release()
    await gateway.engine.scheduler.whenSettled()
    expect(runs).toBe(1)
  })

  test('a server that stops answers with 202', async () => {
    const release = hold()
    const sent = send(gateway, '/main/result', { body: newBody() })
    await expect.poll(() => gateway.engine.scheduler.statistics.waits).toBe(1)
    const drained = gateway.engine.scheduler.drain()
    expect((await sent).status).toBe(202)
    release()
    await drained
    // What arrives from now on is not run by this server.
    expect((await send(gateway, '/main/result', { body: newBody() })).status).toBe(202)
  })
})
