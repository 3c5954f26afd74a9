/** Traces against a receiver of OTLP/HTTP. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import { OtlpReceiver } from '../../../testing/servers/otlp-receiver.ts'
import { RecordingServer } from '../../../testing/servers/recording-server.ts'
import { requireVerifiedPeers } from '../../system/peers.ts'
import { realSystem, TestSystem } from '../../system/system.ts'
import { Secret } from '../../value/secret.ts'
import { memoryLog } from '../log.ts'
import { Metrics } from '../metrics/metrics.ts'
import { openTraces, type TracesOptions } from './open-telemetry.ts'
import type { Span, Traces } from './spans.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const SAMPLED = `00-${TRACE}-${PARENT}-01`
const CONTENT_TYPES = {
  'http/protobuf': 'application/x-protobuf',
  'http/json': 'application/json',
}
const UNSAMPLED = `00-${TRACE}-${PARENT}-00`

let receiver: OtlpReceiver
let opened: Traces[] = []

beforeEach(async () => {
  receiver = await OtlpReceiver.start()
})
afterEach(async () => {
  await Promise.all(opened.map((traces) => traces.close(0)))
  opened = []
  await receiver[Symbol.asyncDispose]()
})

function open(given: Partial<TracesOptions> = {}) {
  const system = given.system ?? realSystem()
  const metrics = new Metrics(system)
  const memory = memoryLog(system)
  const traces = openTraces({
    url: `${receiver.endpoint}/v1/traces`,
    protocol: 'http/protobuf',
    headers: [],
    serviceName: 'svc-test',
    version: '1.2.3',
    ratio: 1,
    batchMillis: 10,
    system,
    log: memory.log,
    metrics,
    ...given,
  })
  opened.push(traces)
  const counted = () => {
    const { counters, gauges } = metrics.collect()
    return [counters.spansExported, counters.spansDropped, gauges.spansQueued]
  }
  return { traces, counted, memory }
}

const start = (name = 'work') => ({ name, kind: 'internal', attributes: {} }) as const
const request = (traces: Traces, headers: Record<string, string> = {}): Span =>
  traces.request({
    name: 'POST /v1/query',
    kind: 'server',
    attributes: { 'svc.request.id': 'req_1' },
    headers: new Headers(headers),
    startedMillis: performance.now(),
  })
const headersOf = (span: Span) => Object.fromEntries(span.headers())

describe.each(['http/protobuf', 'http/json'] as const)('by %s', (protocol) => {
  test('a receiver gets connected spans with their attributes', async () => {
    const { traces, counted } = open({
      protocol,
      headers: [{ name: 'api-key', value: new Secret('a key') }],
    })
    traces.addAttributes({ 'svc.environment.id': 'env_1' })
    const outer = request(traces, { traceparent: SAMPLED, tracestate: 'rojo=1' })
    const inner = outer.child({ ...start('commit'), attributes: { 'svc.commit.writes': 2 } })
    expect(headersOf(inner)).toEqual({
      traceparent: `00-${TRACE}-${inner.logFields.span_id}-01`,
      tracestate: 'rojo=1',
    })
    inner.end({ error: 'UNAVAILABLE' })
    outer.end({ attributes: { 'svc.query.cached': true, 'svc.client.id': undefined } })
    await expect.poll(() => receiver.spans.length).toBe(2)
    const [commit, served] = receiver.spans
    expect(served).toMatchObject({
      traceId: TRACE,
      parentSpanId: PARENT,
      traceState: 'rojo=1',
      kind: 2,
      status: 0,
      name: 'POST /v1/query',
      resource: { 'service.name': 'svc-test', 'service.version': '1.2.3' },
    })
    expect(served!.attributes).toEqual({
      'svc.environment.id': 'env_1',
      'svc.request.id': 'req_1',
      'svc.query.cached': true,
    })
    expect(commit).toMatchObject({
      traceId: TRACE,
      parentSpanId: served!.spanId,
      kind: 1,
      status: 2,
      statusMessage: '',
      attributes: { 'error.type': 'UNAVAILABLE' },
    })
    expect(Number(commit!.attributes['svc.commit.writes'])).toBe(2)
    expect(commit!.startNanos).toBeGreaterThanOrEqual(served!.startNanos)
    expect(commit!.endNanos).toBeLessThanOrEqual(served!.endNanos)
    expect(Math.abs(Number(served!.endNanos / 1_000_000n) - Date.now())).toBeLessThan(60_000)
    expect(receiver.requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: {
        'api-key': 'a key',
        'content-type': CONTENT_TYPES[protocol],
      },
    })
    await expect.poll(counted).toEqual([2, 0, 0])
  })
})

describe('sampling', () => {
  test('the decision of the caller holds, and is passed on', () => {
    const { traces } = open({ ratio: 0 })
    expect(request(traces, { traceparent: SAMPLED }).isSampled).toBe(true)
    expect(request(traces).isSampled).toBe(false)
    const all = open({ ratio: 1 }).traces
    const unsampled = request(all, { traceparent: UNSAMPLED, tracestate: 'rojo=1' })
    expect([unsampled.isSampled, unsampled.logFields]).toEqual([false, {}])
    expect(unsampled.child(start())).toBe(unsampled)
    const passed = headersOf(unsampled)
    expect(passed.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
    expect(passed.traceparent).not.toContain(PARENT)
    expect(passed.tracestate).toBe('rojo=1')
  })

  test('callers cannot force more traces than a bound, nor choose IDs that are sampled', () => {
    const system = new TestSystem()
    const { traces } = open({ ratio: 0, system })
    const forced = (count: number) =>
      Array.from({ length: count }, (_, i) => {
        const id = String(i + 1).padStart(32, '0')
        return request(traces, { traceparent: `00-${id}-${PARENT}-01` })
      }).filter(({ isSampled }) => isSampled).length
    expect(forced(1_000)).toBe(100)
    expect(forced(1_000)).toBe(0)
    system.advance(1_000)
    expect(forced(1_000)).toBe(10)
  })

  test('a share of the traces that begin here is sampled', () => {
    const { traces } = open({ ratio: 0.25 })
    const sampled = Array.from({ length: 10_000 }, () => traces.root(start())).filter(
      ({ isSampled }) => isSampled,
    )
    expect(sampled.length).toBeGreaterThan(2_000)
    expect(sampled.length).toBeLessThan(3_000)
  })

  test('a malformed traceparent begins a new trace without the state of the old one', () => {
    const { traces } = open()
    const span = request(traces, { traceparent: `${SAMPLED}0`, tracestate: 'rojo=1' })
    expect(headersOf(span).traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    expect(headersOf(span).traceparent).not.toContain(TRACE)
    expect(headersOf(span)).not.toHaveProperty('tracestate')
  })

  test('a credential in tracestate is not passed on', () => {
    const { traces } = open()
    const tracestate = `rojo=rk_sec_v1_${'A'.repeat(43)}`
    const span = request(traces, { traceparent: SAMPLED, tracestate })
    expect(Object.keys(headersOf(span))).toEqual(['traceparent'])
  })
})

describe('a receiver that fails', () => {
  test('a batch is repeated after a status that allows it, and not after another one', {
    tags: ['slow'],
  }, async () => {
    const { traces, counted } = open()
    receiver.answer = () => (receiver.requests.length === 1 ? { status: 503 } : {})
    traces.root(start()).end()
    await expect.poll(counted).toEqual([1, 0, 0])
    expect(receiver.requests).toHaveLength(2)
    receiver.answer = () => ({ status: 400, body: 'canary' })
    traces.root(start()).end()
    await expect.poll(counted).toEqual([1, 1, 0])
    expect(receiver.requests).toHaveLength(3)
  })

  test('a redirect of the receiver is not followed', async () => {
    const { traces, counted, memory } = open()
    receiver.answer = () => ({ status: 307, headers: { location: `${receiver.endpoint}/else` } })
    traces.root(start()).end()
    await expect.poll(counted).toEqual([0, 1, 0])
    expect(receiver.requests).toHaveLength(1)
    expect(memory.records().at(-1)).toMatchObject({ event: 'traces.dropped', reason: 'status 307' })
  })

  test('a receiver with an untrusted certificate gets nothing', { tags: ['slow'] }, async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    requireVerifiedPeers(process.env)
    const accepted = () => ({ status: 200, body: '' })
    using secure = await RecordingServer.start(accepted, selfSigned('localhost'))
    const url = `https://localhost:${secure.port}/v1/traces`
    const { traces, counted, memory } = open({ url, exportMillis: 1_000 })
    traces.root(start()).end()
    await expect.poll(counted).toEqual([0, 1, 0])
    expect(secure.requests).toEqual([])
    expect(memory.records().at(-1)!.reason).toMatch(/^connection/)
  })

  test('spans that a receiver rejected are counted', async () => {
    const { traces, counted, memory } = open({ protocol: 'http/json' })
    receiver.answer = () => ({ body: '{"partialSuccess":{"rejectedSpans":"1"}}' })
    for (let i = 0; i < 3; i++) traces.root(start()).end()
    await expect.poll(counted).toEqual([2, 1, 0])
    expect(memory.records().at(-1)).toMatchObject({ count: 1, reason: 'rejected' })
  })

  test('a receiver that fails costs only spans, which are logged once a minute', async () => {
    const { traces, counted, memory } = open({ exportMillis: 50 })
    await receiver[Symbol.asyncDispose]()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 10; i++) traces.root(start()).end()
      const dropped = (round + 1) * 10
      await expect.poll(counted).toEqual([0, dropped, 0])
    }
    const reports = () => memory.records().filter(({ event }) => event === 'traces.dropped')
    expect(reports()).toHaveLength(1)
    expect(reports()[0]).toMatchObject({ level: 'warn', count: 10 })
    await traces.close()
    expect(reports().map(({ count }) => count)).toEqual([10, 20])
    receiver = await OtlpReceiver.start()
  })

  test('a slow receiver causes at most a bounded number of spans in memory', {
    tags: ['slow'],
  }, async () => {
    const { traces, counted } = open({ exportMillis: 60_000 })
    receiver.answer = () => ({ isSilent: true })
    for (let i = 0; i < 10_000; i++) traces.root(start()).end()
    expect(counted()).toEqual([0, 10_000 - 4_096, 4_096])
    await traces.close(20)
    expect(counted()).toEqual([0, 10_000, 0])
  })
})

test('the end exports what has ended, and what ends later is dropped', async () => {
  const { traces, counted } = open({ batchMillis: 60_000 })
  for (let i = 0; i < 1_000; i++) traces.root(start()).end()
  const late = traces.root(start())
  await traces.close()
  expect(receiver.spans).toHaveLength(1_000)
  late.end()
  expect(counted()).toEqual([1_000, 1, 0])
})

describe('a span of another process', () => {
  test('a span of another process is the parent of spans here, and is exported there', async () => {
    const { traces: there } = open()
    const { traces: here, counted } = open()
    const outer = request(there, { traceparent: SAMPLED, tracestate: 'rojo=1' })
    const continued = here.started(
      new Headers(outer.headers().map(([name, value]) => [name, value])),
    )
    expect(continued.isSampled).toBe(true)
    expect(continued.logFields).toEqual(outer.logFields)
    expect(continued.headers()).toEqual(outer.headers())
    const inner = continued.child(start('commit'))
    inner.end()
    continued.set({ 'svc.query.cached': true })
    continued.end()
    outer.end()
    await expect
      .poll(() => receiver.spans.map(({ name }) => name).sort())
      .toEqual(['POST /v1/query', 'commit'])
    const [commit] = receiver.spans.filter(({ name }) => name === 'commit')
    expect(commit).toMatchObject({ traceId: TRACE, parentSpanId: outer.logFields.span_id })
    await expect.poll(counted).toEqual([1, 0, 0])
  })

  test('a span of another process that is not exported has no spans here', () => {
    const { traces } = open()
    const span = traces.started(new Headers({ traceparent: UNSAMPLED }))
    expect(span.isSampled).toBe(false)
    expect(span.child(start('commit')).isSampled).toBe(false)
    expect(traces.started(new Headers()).isSampled).toBe(false)
  })
})
