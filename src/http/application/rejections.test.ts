/** Tests the attribution and the bounds of the log records of rejections. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ORIGIN } from '../../../testing/gateways.ts'
import { publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import {
  entries,
  type RejectionBench,
  rejectionBench,
  type Sent,
  text,
} from '../../../testing/rejections.ts'
import { Fault } from '../../errors/fault.ts'
import {
  deleteCredential,
  revokeCredential,
} from '../../product/application-clients/application-keys.ts'
import { retire } from '../../product/releases/retire.ts'
import { realSystem } from '../../system/system.ts'
import { CODE_RECORDS_MAX, PEERS_MAX } from '../rejection-log.ts'

const system = realSystem()
let bench: RejectionBench
let peers = 0
/** A peer without failures so far. */
let peer = ''

beforeAll(async () => {
  bench = await rejectionBench()
})
beforeEach(() => {
  peers += 1
  peer = `198.51.100.${peers}`
})
afterAll(() => bench.close())

const send = (sent: Sent = {}) => bench.send({ peer, ...sent })

/** Creates a key that is no longer active, with the IDs of its owner. */
function endedKey(how: 'revoked' | 'deleted') {
  const key = bench.issueKey()
  const name = bench.credentialOf(key)
  const { product, actor } = bench.gateway.harness
  revokeCredential(product, actor, { ...name, requestId: REQUEST_ID })
  if (how === 'deleted') deleteCredential(product, actor, { ...name, requestId: REQUEST_ID })
  return { key, name }
}

describe('the content of a rejection record', () => {
  test.each(['revoked', 'deleted'] as const)(
    'the record of a %s key names its credential',
    async (how) => {
      const { key, name } = endedKey(how)
      const { records } = await send({ key })
      expect(records).toMatchObject([{ ...name, detail: `the key is ${how}` }])
      expect(records[0]).not.toHaveProperty('peer')
      expect(bench.memory.text()).not.toContain(key)
    },
  )

  test('the record names the credential that lacks the scope', async () => {
    const { records } = await send({ key: bench.issueKey(['mutation']) })
    expect(records).toMatchObject([{ detail: 'the credential lacks the scope query' }])
  })

  test('the record names the operation ID that was used for another Mutation', async () => {
    const same = { path: '/v1/mutation', function: 'b.write', operationId: system.ids.make('opn') }
    expect((await send({ ...same, arguments: entries(['text', text('a')]) })).records).toEqual([])
    const reused = await send({ ...same, arguments: entries(['text', text()]) })
    expect(reused.records).toMatchObject([{ errorCode: 'OPERATION_REUSED', function: 'b.write' }])
  })

  test('the record names the Release that was retired', async () => {
    const { releaseId } = await publishRelease(bench.gateway.harness, { source: 'first' })
    await publishRelease(bench.gateway.harness, { source: 'second' })
    const { product, actor } = bench.gateway.harness
    retire(product, actor, { releaseId, requestId: REQUEST_ID })
    const { code, records } = await send({ target: `release:${releaseId}` })
    expect(code).toBe('RELEASE_RETIRED')
    expect(records).toMatchObject([{ detail: `${releaseId} is retired` }])
  })

  test('the record names the credential that exceeds its rate', async () => {
    const key = bench.issueKey(undefined, 1)
    let rejected: readonly unknown[] = []
    for (let i = 0; i < 100 && rejected.length === 0; i++) rejected = (await send({ key })).records
    const reason = { errorCode: 'RATE_LIMITED', detail: 'the rate of requests of the credential' }
    expect(rejected).toMatchObject([{ ...bench.credentialOf(key), ...reason }])
  })

  test('the record of a request while nothing is served names the reason', async () => {
    const { engine } = bench.gateway
    const { ready } = engine
    Object.assign(engine, { ready: () => false })
    const { code, records } = await send()
    Object.assign(engine, { ready })
    expect(code).toBe('UNAVAILABLE')
    const detail = 'the engine is not ready yet'
    expect(records).toMatchObject([{ event: 'request.rejected', level: 'warn', peer, detail }])
  })

  test('the record names the rule for a request that the listener rejects', () => {
    const before = bench.memory.records().length
    const fault = new Fault('REQUEST_INVALID', { detail: 'host: one name' })
    const response = bench.gateway.application.reject({ peer }, fault)
    expect(response.status).toBe(400)
    const requestId = response.headers.get('x-service-request-id')
    expect(bench.memory.records().slice(before)).toMatchObject([
      { event: 'request.rejected', requestId, peer, errorCode: fault.code, detail: fault.detail },
    ])
  })
})

describe('requests without a rejection record', () => {
  test('a success, an allowed origin and a declared error leave no rejection record', async () => {
    expect((await send()).records).toEqual([])
    expect((await send({ method: 'OPTIONS', headers: { origin: ORIGIN } })).records).toEqual([])
    const failed = await send({ path: '/v1/mutation', function: 'b.fail' })
    expect([failed.code, failed.records]).toEqual(['APP_FULL', []])
  })

  test('a Function that throws is a failure and leaves no rejection record', async () => {
    const { records } = await send({ path: '/v1/mutation', function: 'b.throw' })
    expect(records.map(({ event, level }) => [event, level])).toEqual([
      ['invocation.failed', 'error'],
    ])
  })
})

const suppressedSince = (before: number) =>
  bench.memory
    .records()
    .slice(before)
    .filter(({ event }) => event === 'request.rejections_suppressed')

describe('the bound on rejection records', () => {
  const rejectedBy = async (times: number, sent: Sent) => {
    let records = 0
    for (let i = 0; i < times; i++) records += (await send(sent)).records.length
    return records
  }

  test('records of one code of a credential are bounded, and later ones are counted', async () => {
    bench.rejections.report()
    const before = bench.memory.records().length
    const [key, other] = [bench.issueKey(), bench.issueKey()]
    expect(await rejectedBy(CODE_RECORDS_MAX + 5, { key, body: '' })).toBe(CODE_RECORDS_MAX)
    const bad = { key, function: 'a.none' }
    expect(await rejectedBy(CODE_RECORDS_MAX + 2, bad)).toBe(CODE_RECORDS_MAX)
    expect(await rejectedBy(1, { key, target: 'channel:beta' })).toBe(1)
    expect(await rejectedBy(1, { key: other, body: '' })).toBe(1)
    bench.rejections.report()
    const suppressed = { REQUEST_INVALID: 5, FUNCTION_NOT_FOUND: 2 }
    expect(suppressedSince(before)).toMatchObject([
      { level: 'info', ...bench.credentialOf(key), suppressed },
    ])
    expect(await rejectedBy(1, { key, body: '' })).toBe(1)
    bench.rejections.report()
    expect(suppressedSince(before)).toHaveLength(1)
  })

  test('records of one code of a peer are bounded, and further peers share a bound', async () => {
    bench.rejections.report()
    const before = bench.memory.records().length
    expect(await rejectedBy(CODE_RECORDS_MAX + 3, { key: null })).toBe(CODE_RECORDS_MAX)
    let records = 0
    for (let i = 1; i < PEERS_MAX + 2 * CODE_RECORDS_MAX; i++) {
      records += (await send({ key: null, peer: `203.0.113.${i}` })).records.length
    }
    expect(records).toBe(PEERS_MAX - 1 + CODE_RECORDS_MAX)
    bench.rejections.report()
    expect(suppressedSince(before)).toMatchObject([
      { peer, suppressed: { APPLICATION_KEY_REQUIRED: 3 } },
      { suppressed: { APPLICATION_KEY_REQUIRED: CODE_RECORDS_MAX } },
    ])
    expect(suppressedSince(before)[1]).not.toHaveProperty('peer')
  })
})
