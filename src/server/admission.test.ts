import { expect, test } from 'vitest'
import { APPLICATION_CODES } from '../http/errors.ts'
import { TestSystem } from '../system/system.ts'
import { Admission, type AdmissionOptions } from './admission.ts'

const BINDING = {} as Parameters<Admission['fetch']>[1]
const APP = { fetch: () => new Response('served') }

function opened(more: Partial<AdmissionOptions> = {}) {
  const answered: number[] = []
  const admission = new Admission({
    codes: APPLICATION_CODES,
    system: new TestSystem(),
    probes: { live: '/healthz', ready: '/readyz' },
    onAnswer: (response) => answered.push(response.status),
    ...more,
  })
  const ask = async (path: string, init: RequestInit = {}) => {
    return admission.fetch(new Request(`http://localhost${path}`, init), BINDING)
  }
  return { admission, answered, ask }
}

async function rejection(response: Response) {
  const { error } = await response.json()
  return [response.status, response.headers.get('retry-after'), error.code, error.retryable]
}

const REJECTED = [503, '1', 'UNAVAILABLE', true]

test('a request waits for the start and is then served', async () => {
  const { admission, ask, answered } = opened()
  const waiting = [ask('/v1/query', { method: 'POST' }), ask('/other')]
  admission.open(APP)
  const bodies = (await Promise.all(waiting)).map((response) => response.text())
  expect(await Promise.all(bodies)).toEqual(['served', 'served'])
  expect(answered).toEqual([])
})

test('a request that waited for the longest time is rejected with a time to retry', async () => {
  const { ask, answered } = opened({ waitingMillisMax: 1 })
  expect(await rejection(await ask('/v1/query', { method: 'POST' }))).toEqual(REJECTED)
  expect(answered).toEqual([503])
})

test('more requests than may wait are rejected at once, until others are answered', async () => {
  const { admission, ask } = opened({ waitingMax: 2 })
  const waiting = [ask('/one'), ask('/two')]
  expect(await rejection(await ask('/three'))).toEqual(REJECTED)
  admission.open(APP)
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200])
})

test('a client that leaves makes room for another that waits', async () => {
  const { admission, ask } = opened({ waitingMax: 1 })
  const leaving = new AbortController()
  const left = ask('/one', { signal: leaving.signal })
  leaving.abort()
  expect((await left).status).toBe(503)
  const second = ask('/two')
  admission.open(APP)
  expect((await second).status).toBe(200)
})

test('a request that waits when the start fails is rejected', async () => {
  const { admission, ask } = opened()
  const waiting = ask('/v1/query', { method: 'POST' })
  admission.drain()
  expect(await rejection(await waiting)).toEqual(REJECTED)
})

test('a server that stops rejects new requests', async () => {
  const { admission, ask } = opened()
  admission.open(APP)
  expect(await (await ask('/v1/query')).text()).toBe('served')
  admission.drain()
  expect(await rejection(await ask('/v1/query'))).toEqual(REJECTED)
})

test.each(['starts', 'stops'])('a server that %s is live and not ready', async (phase) => {
  const { admission, ask, answered } = opened()
  if (phase === 'stops') {
    admission.open(APP)
    admission.drain()
  }
  const [live, ready] = [await ask('/healthz'), await ask('/readyz')]
  expect([live.status, await live.json()]).toEqual([200, { status: 'live' }])
  expect([ready.status, await ready.json()]).toEqual([503, { status: 'unavailable' }])
  expect(ready.headers.get('retry-after')).toBe('1')
  expect(answered).toEqual([200, 503])
})
