/** Tests that the log shows the use of each key: in records of calls, and in its own counts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest } from '../../../testing/products.ts'
import { issueGuest } from '../../product/functional-tokens/guests.ts'
import { realSystem } from '../../system/system.ts'
import { memoryLog } from '../../telemetry/log.ts'
import { applicationLimits } from '../rate-limits.ts'

/** Aborts the request to a.left, as a client does that disconnects. */
const caller = new AbortController()
const memory = memoryLog()
let gateway: TestGateway
beforeAll(async () => {
  const common = { clients: ['confidential'], returns: { type: 'any' } } as const
  gateway = await openTestGateway({
    functions: [
      ...['a.bad', 'a.left', 'a.much', 'a.one'].map((name) => functionManifest(name, common)),
      functionManifest('a.public', { ...common, clients: ['public'] }),
      functionManifest('a.user', { ...common, auth: 'user' }),
    ],
    tables: [],
    handlers: {
      'a.much': () => 'x'.repeat(8 * 1024 * 1024),
      'a.one': () => 1,
      'a.left': () => {
        caller.abort()
        throw new TypeError('x')
      },
      'a.bad': () => {
        throw new TypeError('x')
      },
    },
    limits: applicationLimits({ monotonicMillis: () => 0 }),
    log: memory.log,
  })
})
afterAll(() => gateway.close())

/** Returns the status, and the log records of the request. */
async function call(name: string, key: string, signal?: AbortSignal, token?: string) {
  const before = memory.records().length
  const response = await gateway.application.fetch(
    new Request('http://app.test/v1/query', {
      signal: signal ?? null,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-key': key,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({
        version: 1,
        target: 'channel:production',
        function: name,
        arguments: { type: 'object', value: [] },
      }),
    }),
  )
  await response.text()
  return { status: response.status, records: memory.records().slice(before) }
}

function guest(): string {
  const { keyring, descriptor } = gateway.harness.root
  const nowMicros = realSystem().nowMicros()
  const request = { entropy: new Uint8Array(10), nowMicros, expiresInSeconds: 60 }
  return issueGuest({ keyring, environmentId: descriptor.environmentId }, request)
}

function callerOf(key: string) {
  const { clientId, credentialId } = gateway.harness.product.keys.authenticate(key)!
  return { clientId, credentialId }
}

test('a record of a call names its key and its Function', async () => {
  const key = gateway.issueKey('confidential')
  const { status, records } = await call('a.bad', key)
  expect(status).toBe(500)
  const about = { ...callerOf(key), releaseId: gateway.releaseId, function: 'a.bad' }
  expect(records.map(({ event }) => event)).toEqual(['function.failed', 'invocation.failed'])
  for (const record of records) expect(record).toMatchObject(about)
  const [{ requestId, invocationId }] = records as [(typeof records)[number]]
  expect(invocationId).toMatch(/^ivc_/)
  expect(records[1]).toMatchObject({ requestId, invocationId })
})

test('one warning names the limit that a call exceeded, and its Function', async () => {
  const key = gateway.issueKey('confidential')
  const { status, records } = await call('a.much', key)
  expect(status).toBe(413)
  expect(records).toMatchObject([
    {
      level: 'warn',
      errorCode: 'LIMIT_EXCEEDED',
      detail: 'result: at most 8 MiB',
      message: 'Rejected with LIMIT_EXCEEDED: result: at most 8 MiB.',
      requestId: expect.stringMatching(/^req_/),
      invocationId: expect.stringMatching(/^ivc_/),
      ...callerOf(key),
      releaseId: gateway.releaseId,
      function: 'a.much',
    },
  ])
})

test.each([
  ['its kind of client', 'a.public', 'a confidential key may not call this Function'],
  ['its scope', 'a.one', 'the credential lacks the scope query'],
  ['its kind of identity', 'a.user', 'the Function requires a user identity, not a guest'],
])('a call that is denied for %s is logged once at the level info', async (_, name, detail) => {
  const key = gateway.issueKey('confidential', null, name === 'a.one' ? ['mutation'] : undefined)
  const { status, records } = await call(name, key, undefined, guest())
  expect(status).toBe(403)
  expect(records).toMatchObject([
    {
      event: 'request.rejected',
      level: 'info',
      errorCode: 'AUTH_POLICY_DENIED',
      detail,
      message: `Rejected with AUTH_POLICY_DENIED: ${detail}.`,
      requestId: expect.stringMatching(/^req_/),
      ...callerOf(key),
      releaseId: gateway.releaseId,
      function: name,
    },
  ])
})

test('a record of a call without a valid key names no key', async () => {
  const { status, records } = await call('a.one', 'rk_sec_v1_x')
  expect(status).toBe(401)
  expect(records.map(({ event }) => event)).toEqual(['request.rejected'])
  expect(Object.keys(records[0]!)).not.toContain('credentialId')
})

test('the use of each key is logged by the outcome of its requests', async () => {
  const [few, many] = [gateway.issueKey('confidential'), gateway.issueKey('confidential', 1)]
  await call('a.one', few)
  await call('a.one', few)
  await call('a.bad', few)
  await call('a.none', few)
  await call('a.left', few, caller.signal)
  expect((await call('a.one', many)).status).toBe(200)
  const limited = [await call('a.one', many), await call('a.one', many)].map((it) => it.status)
  expect(limited).toContain(429)
  const rejected = limited.filter((status) => status === 429).length
  gateway.keyUsage.report()
  const figures = memory.records().filter(({ event }) => event === 'credential.usage')
  const of = (key: string) =>
    figures.filter(({ credentialId }) => credentialId === callerOf(key).credentialId)
  expect(of(few)).toHaveLength(1)
  expect(of(few)[0]).toMatchObject({
    ...callerOf(few),
    succeeded: 2,
    rejected: 2,
    failed: 1,
    rateLimited: 0,
  })
  expect(of(many)[0]).toMatchObject({ succeeded: 3 - rejected, rejected, rateLimited: rejected })
  expect(memory.text()).not.toContain(few)
  gateway.keyUsage.report()
  expect(memory.records().filter(({ event }) => event === 'credential.usage')).toEqual(figures)
})
