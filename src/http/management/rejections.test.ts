/** Tests the log records of management requests: what they name, and that strangers bound them. */
import { beforeEach, describe, expect, test } from 'vitest'
import { type TestManagement, testManagement } from '../../../testing/openapi/checked-origins.ts'
import { unstoredSessions } from '../../../testing/operators.ts'
import { actorWith } from '../../../testing/products.ts'
import { Fault } from '../../errors/fault.ts'
import { TestSystem } from '../../system/system.ts'
import { type LogRecord, type MemoryLog, memoryLog } from '../../telemetry/log.ts'
import { operatorOperation, publicOperation } from '../../wire/operations/operation.ts'
import { CODE_RECORDS_MAX, RejectionLog } from '../rejection-log.ts'
import { healthRoutes } from './health.ts'
import { bind } from './route.ts'

const TOKEN = `rk_at_v1_${'a'.repeat(43)}`
const SESSION = { authorization: `Bearer ${TOKEN}` }
const CANARY = 'canary-of-a-caller'
const DESCRIBED = {
  method: 'GET',
  name: 'test',
  summary: 'A test.',
  replies: { 204: null },
} as const
const OPERATIONS = {
  own: operatorOperation({ ...DESCRIBED, path: '/own' }),
  ownFailing: operatorOperation({ ...DESCRIBED, path: '/own/failing' }),
  failing: publicOperation({ ...DESCRIBED, path: '/failing' }),
}
const actor = actorWith()
const subject = { operatorId: actor.operatorId, sessionId: actor.sessionId }

let memory: MemoryLog
let rejections: RejectionLog
let origin: TestManagement

const fail = (): never => {
  throw new Fault('PLATFORM_UNAVAILABLE', { cause: new Error('the database is gone') })
}

beforeEach(() => {
  memory = memoryLog()
  rejections = new RejectionLog(memory.log)
  origin = testManagement({
    app: {
      identity: { ready: async () => true },
      environment: null,
      sessions: unstoredSessions(async (token) => {
        if (token === TOKEN) return actor
        throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail: 'the session has ended' })
      }),
    },
    system: new TestSystem(),
    log: memory.log,
    rejections,
    routes: [
      ...healthRoutes,
      ...bind(OPERATIONS, { own: () => ({ status: 204 }), ownFailing: fail, failing: fail }),
    ],
  })
})

/** Sends the request; returns its records that a server writes by default. */
async function recordsOf(path: string, init: RequestInit = {}, peer = '198.51.100.7') {
  const before = memory.records().length
  await origin.request(path, init, { peer })
  return writtenSince(before)
}

function writtenSince(before: number): readonly LogRecord[] {
  return memory
    .records()
    .slice(before)
    .filter(({ level }) => level !== 'debug')
}

/** Sends the request many times; returns how many records it left. */
async function countOf(times: number, path: string, init?: RequestInit, peer?: string) {
  let records = 0
  for (let i = 0; i < times; i++) records += (await recordsOf(path, init, peer)).length
  return records
}

const STRANGERS: readonly (readonly [
  name: string,
  path: string,
  init: RequestInit,
  code: string,
])[] = [
  ['of no route', `/${CANARY}`, {}, 'PLATFORM_NOT_FOUND'],
  ['with another method', '/own', { method: 'DELETE' }, 'PLATFORM_METHOD_NOT_ALLOWED'],
  ['without a token', '/own', {}, 'PLATFORM_AUTHENTICATION_FAILED'],
  [
    'with a token that has ended',
    '/own',
    { headers: { authorization: `Bearer rk_at_v1_${'b'.repeat(43)}` } },
    'PLATFORM_AUTHENTICATION_FAILED',
  ],
  ['to a probe, with a query', `/health/live?${CANARY}=1`, {}, 'PLATFORM_REQUEST_INVALID'],
  ['while the database is gone', '/failing', {}, 'PLATFORM_UNAVAILABLE'],
]

describe('requests without a session', () => {
  test('requests that succeed leave no record', async () => {
    expect(await recordsOf('/health/ready')).toEqual([])
  })

  test.each(STRANGERS)(
    '%s leave ten records a minute, with the peer',
    async (_, path, init, code) => {
      const peer = '198.51.100.7'
      const [record, ...others] = await recordsOf(path, init)
      expect(others).toEqual([])
      expect(record).toMatchObject({ event: 'request.rejected', errorCode: code, peer })
      expect(await countOf(CODE_RECORDS_MAX + 4, path, init)).toBe(CODE_RECORDS_MAX - 1)
      expect(await countOf(1, path, init, '203.0.113.9')).toBe(1)
      const before = memory.records().length
      rejections.report()
      expect(writtenSince(before)).toMatchObject([
        { event: 'request.rejections_suppressed', peer, suppressed: { [code]: 5 } },
      ])
      expect(memory.text()).not.toContain(CANARY)
    },
  )

  test('requests that the listener rejects leave a record with the peer', () => {
    const fault = new Fault('PLATFORM_REQUEST_INVALID', { detail: 'host: one host' })
    const response = origin.reject({ peer: '198.51.100.7' }, fault)
    expect(response.status).toBe(400)
    const requestId = response.headers.get('x-service-request-id')
    expect(memory.records()).toMatchObject([
      { event: 'request.rejected', requestId, peer: '198.51.100.7', detail: fault.detail },
    ])
  })

  test('the record of a failed request names the cause', async () => {
    const [record] = await recordsOf('/failing')
    expect(record).toMatchObject({ level: 'warn', error: { message: 'the database is gone' } })
  })
})

describe('requests with a session', () => {
  test('every request leaves a record with the operator', async () => {
    const request = { event: 'http.request', level: 'info', method: 'GET', status: 204 }
    const records = await recordsOf('/own', { headers: SESSION })
    expect(records).toMatchObject([{ ...request, route: '/own', ...subject }])
    expect(await countOf(50, '/own', { headers: SESSION })).toBe(50)
  })

  test('rejected requests leave ten records a minute, with the operator', async () => {
    const [record, ...others] = await recordsOf('/own?query=1', { headers: SESSION })
    expect(others).toEqual([])
    expect(record).toMatchObject({ event: 'request.rejected', route: '/own', ...subject })
    expect(record).not.toHaveProperty('peer')
    const count = await countOf(CODE_RECORDS_MAX + 4, '/own?query=1', { headers: SESSION })
    expect(count).toBe(CODE_RECORDS_MAX - 1)
  })

  test('failed requests are errors', async () => {
    const records = await recordsOf('/own/failing', { headers: SESSION })
    expect(records).toMatchObject([
      { event: 'http.failed', level: 'error', error: { message: 'the database is gone' } },
      { event: 'http.request', status: 503, ...subject },
    ])
  })
})
