/** Tests that a request with a slow body is authorized again when the body is complete. */
import { expect, test } from 'vitest'
import { testManagement } from '../../testing/openapi/checked-origins.ts'
import { actorWith } from '../../testing/products.ts'
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import { TestSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import type { Capability } from '../value/capabilities.ts'
import { operatorOperation } from '../wire/operations/operation.ts'
import { NO_FIELDS } from '../wire/schema.ts'
import { bind, type Sessions } from './management/route.ts'

const CAPABILITY: Capability = 'operators:manage'

const OPERATIONS = {
  send: operatorOperation({
    method: 'POST',
    path: '/',
    name: 'test',
    summary: 'A test.',
    capability: CAPABILITY,
    body: { schema: NO_FIELDS },
    replies: { 204: null },
  }),
}

/** Sends a body that takes `bodyMillis`; afterwards `later` authorizes the session. */
async function send(bodyMillis: number, later: () => Actor) {
  const system = new TestSystem()
  const seen: Actor[] = []
  let looked = 0
  const sessions: Sessions = {
    recognize: (token) => token,
    authenticate: async () => actorWith([CAPABILITY]),
    whileAuthorized: async (_, work) => {
      looked += 1
      return work(later())
    },
  }
  const hono = testManagement({
    system,
    log: memoryLog().log,
    app: { environment: null, sessions },
    routes: bind(OPERATIONS, {
      send({ actor }) {
        seen.push(actor)
        return { status: 204 }
      },
    }),
  })
  const source: UnderlyingDefaultSource<Uint8Array> = {
    pull(controller) {
      system.advance(bodyMillis)
      controller.enqueue(new TextEncoder().encode('{}'))
      controller.close()
    },
  }
  // With this strategy, nothing is pulled before the body is read.
  const body = new ReadableStream(source, { highWaterMark: 0 })
  const headers = {
    authorization: `Bearer rk_at_v1_${'A'.repeat(43)}`,
    'content-type': 'application/json',
  }
  const { status } = await hono.request('/', { method: 'POST', headers, body })
  return { status, seen, looked }
}

const ended = (): Actor => {
  throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
}

test('a request is not handled if its session ended while its body arrived', async () => {
  expect(await send(5_000, ended)).toEqual({ status: 401, seen: [], looked: 1 })
})

test('a request is not handled if its operator lost the capability meanwhile', async () => {
  const less = () => actorWith(['logs:read'])
  expect(await send(5_000, less)).toEqual({ status: 403, seen: [], looked: 1 })
})

test('a handler receives the grants at the end of a slow body', async () => {
  const now = actorWith([CAPABILITY, 'logs:read'])
  expect(await send(5_000, () => now)).toEqual({ status: 204, seen: [now], looked: 1 })
})

test('a fast body causes no second authorization', async () => {
  const { status, looked } = await send(10, ended)
  expect([status, looked]).toEqual([204, 0])
})
