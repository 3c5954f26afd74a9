import { beforeEach, expect, test } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const REMOTE = ['--remote', '--root', 'root']
const ID = 'sch_01MCC5RM00440WAKYHT0DB49BM'
const RELEASE = 'rel_01MCC5RM00440WAKYHT0DB49BM'
const DELIVERY = {
  deliveryId: ID,
  mount: 'payments',
  route: 'stripe',
  event: 'evt_1',
  method: 'POST',
  path: '/stripe',
  bodyBytes: 14,
  receivedAtMicros: '1800000000000000',
  state: 'failed',
  function: 'payments.onEvent',
  releaseId: RELEASE,
  attempts: 1,
  lastErrorCode: 'FUNCTION_FAILED',
  lastErrorMessage: 'the total is missing',
  finishedAtMicros: '1800000001000000',
  hasContent: true,
}
const operation = {
  version: 1,
  operationId: 'opn_01MCC5RM00440WAKYHT0DB49BM',
  kind: 'http_mount.replay',
  outcome: 'applied',
  replayed: false,
  revision: '1',
  createdAtMicros: '1800000000000000',
}
const contentOf = (body: string | Uint8Array) => ({
  headers: { 'content-type': 'application/json' },
  query: { shop: '7' },
  body: Buffer.from(body).toString('base64url'),
})

let server: FakeServer
let client: TestClient
let content: ReturnType<typeof contentOf> | null | undefined
let state: string
beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  content = contentOf('{"total":null}')
  state = 'failed'
  server.intercept = ({ method, path }) => {
    if (!path.includes('/deliveries')) return null
    if (method === 'POST') return { status: 200, body: { version: 1, ...DELIVERY, operation } }
    if (!path.includes(ID)) {
      return { status: 200, body: { version: 1, items: [{ ...DELIVERY, state }], next: ID } }
    }
    return {
      status: 200,
      body: { version: 1, ...DELIVERY, state, ...(content !== undefined && { content }) },
    }
  }
})

test('the list shows what came and what it became, and how to read on', async () => {
  const filter = ['--state', 'failed', '--route', 'stripe', '--limit', '1']
  const { exit, out, err } = await client.run(
    'http',
    'deliveries',
    'payments',
    ...filter,
    ...REMOTE,
  )
  expect(exit).toBe(0)
  const rows = out.split('\n').map((line) => line.trimEnd().split(/ {2,}/))
  expect(rows.slice(0, 2)).toEqual([
    ['ID', 'RECEIVED', 'ROUTE', 'EVENT', 'STATE', 'ATTEMPTS', 'ERROR'],
    [ID, '2027-01-15T08:00:00Z', 'stripe', 'evt_1', 'failed', '1', 'FUNCTION_FAILED'],
  ])
  expect(err).toContain(`--after ${ID}`)
  expect(err).toContain('`svc http replay`')
  const { searchParams } = new URL(server.requests.at(-1)!.path, 'http://a')
  expect(Object.fromEntries(searchParams)).toEqual({ state: 'failed', route: 'stripe', limit: '1' })
})

test('one delivery is shown with its reason, its headers and its body', async () => {
  const { exit, out, err } = await client.run('http', 'delivery', 'payments', ID, ...REMOTE)
  expect(exit).toBe(0)
  expect(err).toContain(`run it again with \`svc http replay payments ${ID}\``)
  expect(out.trimEnd().split('\n')).toEqual([
    `${ID} of payments, hook stripe`,
    'event     evt_1',
    'received  2027-01-15T08:00:00Z',
    'request   POST /stripe, 14 bytes',
    `handler   payments.onEvent of ${RELEASE}`,
    'state     failed at 2027-01-15T08:00:01Z, attempts: 1',
    'failure   FUNCTION_FAILED: the total is missing',
    'header    content-type: application/json',
    'query     shop=7',
    '',
    '{"total":null}',
  ])
})

test.each([
  [undefined, 'data:read'],
  [null, 'no longer stored'],
  [contentOf(new Uint8Array([255])), 'base64url'],
])('a content that cannot be shown is explained: %j', async (given, text) => {
  content = given
  const { out } = await client.run('http', 'delivery', 'payments', ID, ...REMOTE)
  expect(out).toContain(text)
})

test('no replay is named where nothing has failed', async () => {
  state = 'succeeded'
  for (const command of [
    ['deliveries', 'payments'],
    ['delivery', 'payments', ID],
  ]) {
    const { exit, err } = await client.run('http', ...command, ...REMOTE)
    expect([exit, err.includes('svc http replay')]).toEqual([0, false])
  }
})

test('a replay names the command that shows its end', async () => {
  const { exit, out } = await client.run('http', 'replay', 'payments', ID, ...REMOTE)
  expect(exit).toBe(0)
  expect(out).toContain(`\`svc http delivery payments ${ID}\``)
  const { method, path } = server.requests.at(-1)!
  expect([method, path]).toEqual([
    'POST',
    `${server.base}/http-mounts/payments/deliveries/${ID}/replay`,
  ])
})

test('a replay that the server rejects says why', async () => {
  server.intercept = () => failure('PRODUCT_STATE_CONFLICT', 409)
  const { exit, err } = await client.run('http', 'replay', 'payments', ID, ...REMOTE)
  expect([exit, err]).toEqual([4, expect.stringContaining('svc http delivery')])
})

test.each([
  ['deliveries', []],
  ['deliveries', ['Payments']],
  ['deliveries', ['payments', '--state', 'lost']],
  ['deliveries', ['payments', '--route', 'a b']],
  ['deliveries', ['payments', '--limit', '0']],
  ['deliveries', ['payments', '--after', 'evt_1']],
  ['delivery', ['payments']],
  ['delivery', ['payments', 'evt_1']],
  ['replay', ['payments', 'evt_1']],
])('a wrong command line sends nothing: http %s %j', async (verb, given) => {
  const { exit } = await client.run('http', verb, ...given, ...REMOTE)
  expect([exit, server.requests]).toEqual([2, []])
})
