/** Routes of mounts and of what other services delivered: what each caller sees of a delivery. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import { REQUEST_ID } from '../../../testing/products.ts'
import type { ScheduledWork } from '../../engine/scheduled-work/scheduled-documents.ts'
import { changeMount } from '../../product/http-mounts/mounts.ts'
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'
import { encodeStored } from '../../value/stored.ts'
import { DeliveryRead } from '../../wire/http/deliveries.ts'
import { MountList } from '../../wire/http/mounts.ts'

const BODY = 'a body with a name'
const CONTENT = new Map([
  [
    'delivery',
    new Map<string, ReadonlyMap<string, string> | Uint8Array>([
      ['headers', new Map([['x-event', 'paid']])],
      ['query', new Map([['shop', '7']])],
      ['body', new TextEncoder().encode(BODY)],
    ]),
  ],
])

let routes: ProductRoutes
let work: ScheduledWork
beforeAll(async () => {
  routes = await ProductRoutes.open()
  const { product, actor, system, engine } = routes.harness
  changeMount(product, actor, {
    operationId: system.ids.make('opn'),
    name: 'main',
    configuration: { target: 'channel:production' },
    expectedRevision: null,
    changedAtMicros: system.nowMicros(),
    requestId: REQUEST_ID,
  })
  work = {
    scheduledId: system.ids.make('sch'),
    releaseId: system.ids.make('rel'),
    function: 'hooks.onEvent',
    kind: 'mutation',
    argumentsText: encodeStored(CONTENT as Parameters<typeof encodeStored>[0]),
    source: 'http',
    cron: null,
    http: { mount: 'main', route: 'a', event: 'evt', method: 'POST', path: '/a', bytes: 18 },
    state: 'failed',
    attempts: 1,
    dueAtMicros: 1n,
    createdAtMicros: 1n,
    lastErrorCode: 'FUNCTION_FAILED',
    lastErrorMessage: 'it failed',
    finishedAtMicros: 2n,
    rerunBy: null,
  }
  engine.scheduler = { ...engine.scheduler, find: async () => work }
})
beforeEach(() => {
  routes.capabilities = CAPABILITIES
})
afterAll(() => routes.harness.close())

const without = (...missing: readonly Capability[]) =>
  CAPABILITIES.filter((capability) => !missing.includes(capability))
const path = () => `/http-mounts/main/deliveries/${work.scheduledId}`

test('the headers, the query and the body of a delivery need data:read', async () => {
  const whole = await answer(routes.call('GET', path()), 200, DeliveryRead)
  const body = Buffer.from(BODY).toString('base64url')
  expect(whole.content).toEqual({ headers: { 'x-event': 'paid' }, query: { shop: '7' }, body })
  routes.capabilities = without('data:read')
  const { content, ...rest } = whole
  expect(await answer(routes.call('GET', path()), 200, DeliveryRead)).toEqual(rest)
})

test('the content of a delivery that dropped it is null', async () => {
  const kept = work
  work = { ...kept, argumentsText: '{}', state: 'succeeded' }
  const read = await answer(routes.call('GET', path()), 200, DeliveryRead)
  expect([read.hasContent, read.content]).toEqual([false, null])
  work = kept
})

test('deliveries need logs:read, and a replay data:write', async () => {
  routes.capabilities = without('logs:read', 'data:write')
  for (const [method, url] of [
    ['GET', '/http-mounts/main/deliveries'],
    ['GET', path()],
    ['POST', `${path()}/replay`],
  ] as const) {
    await rejection(routes.call(method, url), 403, 'PLATFORM_ACCESS_DENIED')
  }
})

test('a list of mounts says which of them serves nothing', async () => {
  const { mounts } = await answer(routes.call('GET', '/http-mounts'), 200, MountList)
  expect(mounts).toMatchObject([{ name: 'main', releaseId: null }])
})
