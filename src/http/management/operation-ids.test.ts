import { expect, test } from 'vitest'
import { testManagement } from '../../../testing/openapi/checked-origins.ts'
import { unstoredSessions } from '../../../testing/operators.ts'
import type { Actor } from '../../identity/actor.ts'
import { TestSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import type { OperationId } from '../../value/ids.ts'
import { operatorOperation } from '../../wire/operations/operation.ts'
import { bind } from './route.ts'

const OPERATION_ID = 'opn_00000000000000000000000001'
const seen: (OperationId | null)[] = []

const DESCRIBED = {
  method: 'POST',
  name: 'test',
  summary: 'A test.',
  replies: { 204: null },
} as const

const OPERATIONS = {
  required: operatorOperation({ ...DESCRIBED, path: '/required', operationId: 'required' }),
  optional: operatorOperation({ ...DESCRIBED, path: '/optional', operationId: 'optional' }),
  none: operatorOperation({ ...DESCRIBED, path: '/none' }),
}

const hono = testManagement({
  system: new TestSystem(),
  log: memoryLog().log,
  app: {
    environment: null,
    sessions: unstoredSessions(async () => ({ grants: [] }) as unknown as Actor),
  },
  routes: bind(OPERATIONS, {
    required({ operationId }) {
      const required: OperationId = operationId
      seen.push(required)
      return { status: 204 }
    },
    optional({ operationId }) {
      seen.push(operationId)
      return { status: 204 }
    },
    none({ operationId }) {
      const none: null = operationId
      seen.push(none)
      return { status: 204 }
    },
  }),
})

async function send(path: string, ...keys: readonly string[]): Promise<number> {
  const headers = new Headers({ authorization: `Bearer rk_at_v1_${'A'.repeat(43)}` })
  for (const key of keys) headers.append('Idempotency-Key', key)
  return (await hono.request(path, { method: 'POST', headers })).status
}

test('a route that requires an Operation ID rejects a request without one', async () => {
  expect(await send('/required')).toBe(400)
  expect(await send('/required', OPERATION_ID)).toBe(204)
  expect(seen.at(-1)).toBe(OPERATION_ID)
})

test('a route with an optional Operation ID rejects a malformed one', async () => {
  expect(await send('/optional')).toBe(204)
  expect(seen.at(-1)).toBeNull()
  expect(await send('/optional', OPERATION_ID)).toBe(204)
  expect(seen.at(-1)).toBe(OPERATION_ID)
  expect(await send('/optional', '')).toBe(400)
})

test('a route without Operation ID ignores the header', async () => {
  expect(await send('/none', 'x')).toBe(204)
  expect(seen.at(-1)).toBeNull()
})

test.each(['/required', '/optional'])('%s accepts exactly one canonical ID', async (path) => {
  for (const keys of [
    [OPERATION_ID, OPERATION_ID],
    [`${OPERATION_ID},${OPERATION_ID}`],
    [OPERATION_ID.toLowerCase().replace('1', 'a')],
    ['opi_00000000000000000000000001'],
    ['opn_80000000000000000000000001'],
    [`${OPERATION_ID}0`],
  ]) {
    expect(await send(path, ...keys)).toBe(400)
  }
})
