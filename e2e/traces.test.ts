/** Traces that the compiled server sends to a receiver of OTLP/HTTP. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { OtlpReceiver, type ReceivedSpan } from '../build/testing/servers/otlp-receiver.ts'
import { freePort } from '../build/testing/servers/ports.ts'
import {
  type Application,
  action,
  application,
  type Json,
  mutation,
  query,
  string,
} from './application.ts'
import { filesBelow, locationsOf } from './canaries.ts'
import { CLIENT, run } from './harness.ts'

const functions = (port: number) => `
  import { action, internalMutation, mutation, query, v } from 'svc'
  import { api, internal } from '../_generated/api'

  export const list = query({
    clients: ['confidential'],
    arguments: { of: v.string() },
    returns: v.int64(),
    handler: async (ctx) => BigInt((await ctx.db.table('channels').scan().collect()).length),
  })
  export const store = mutation({
    clients: ['confidential'],
    arguments: { name: v.string() },
    returns: v.string(),
    handler: async (ctx, { name }) => {
      await ctx.db.insert('channels', { name })
      console.log('stored')
      if (name.endsWith('-thrown')) throw new Error('no')
      return name
    },
  })
  export const later = mutation({
    clients: ['confidential'],
    arguments: { name: v.string() },
    returns: v.string(),
    handler: (ctx, { name }) =>
      ctx.scheduler.runAfter({ milliseconds: 1 }, internal.traced.work, { name }),
  })
  export const work = internalMutation({
    arguments: { name: v.string() },
    returns: v.null(),
    handler: async (ctx, { name }) => {
      await ctx.db.insert('channels', { name })
      return null
    },
  })
  export const relay = action({
    clients: ['confidential'],
    uses: { network: ['localhost:${port}'], secrets: ['API_KEY'] },
    arguments: { key: v.string(), name: v.string() },
    returns: v.string(),
    handler: async (ctx, { key, name }) => {
      await ctx.runMutation(api.traced.store, { name })
      const secret = await ctx.config.secret('API_KEY')
      await fetch('https://' + secret.toLowerCase() + '.test/' + name).catch(() => null)
      const body = JSON.stringify({
        version: 1,
        target: 'channel:production',
        function: 'traced.list',
        arguments: {
          type: 'object',
          value: [{ key: 'of', value: { type: 'string', value: name } }],
        },
      })
      const headers = { 'content-type': 'application/json', 'x-service-key': key }
      const url = 'http://localhost:${port}/v1/query'
      const response = await fetch(url, { method: 'POST', headers, body })
      await fetch(url + '?token=' + secret, {
        headers: { authorization: 'Bearer ' + secret },
      })
      return String(response.status)
    },
  })
`

const TRACE = randomBytes(16).toString('hex')
const PARENT = randomBytes(8).toString('hex')
const traceparent = `00-${TRACE}-${PARENT}-01`
const secret = randomBytes(32).toString('hex')
const otlpKey = randomBytes(32).toString('base64url')

let app: Application
let receiver: OtlpReceiver
const remote = () => ['--remote', '--root', app.installation.productRoot]
const canaries: string[] = []

/** Makes a value that no trace may contain. */
function canary(): string {
  const value = `canary-${randomBytes(16).toString('hex')}`
  canaries.push(value)
  return value
}

beforeAll(async () => {
  receiver = await OtlpReceiver.start()
  const port = await freePort()
  app = await application(
    (workspace) => writeFileSync(join(workspace, 'functions', 'traced.ts'), functions(port)),
    {
      SERVICE_APPLICATION_LISTEN: `127.0.0.1:${port}`,
      SERVICE_ACTION_ALLOWED_NETWORKS: '127.0.0.0/8,::1/128',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: `api-key=${otlpKey}`,
      // Runtime and library read none of these: traces would go elsewhere or stop.
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_SDK_DISABLED: 'true',
      HTTP_PROXY: 'http://127.0.0.1:9',
      SERVICE_LOG_SEGMENT_SECONDS: '1',
    },
  )
  canaries.push(app.key, secret, otlpKey)
  const set = await run([CLIENT, 'config', 'set', 'API_KEY', '--secret', ...remote()], {
    environment: app.installation.clientEnvironment,
    directory: app.installation.directory,
    input: `${secret}\n`,
  })
  expect(set.status).toBe(0)
})
afterAll(async () => {
  await app?.installation.dispose()
  await receiver?.[Symbol.asyncDispose]()
})

/** Waits until the trace has a span for each of these names, and returns its spans by name. */
async function traced(traceId: string, ...names: string[]): Promise<Map<string, ReceivedSpan>> {
  const spans = () => receiver.spans.filter((span) => span.traceId === traceId)
  const found = () => spans().map(({ name }) => name)
  await expect.poll(found, { timeout: 20_000 }).toEqual(expect.arrayContaining(names))
  return new Map(spans().map((span) => [span.name, span]))
}

test('a call, its invocation and its commit are connected, also to the log', async () => {
  const name = canary()
  const stored = await mutation(app, {
    ...{ function: 'traced.store', arguments: { name: string(name) } },
    headers: { traceparent, tracestate: 'rojo=1' },
  })
  expect(stored.status).toBe(200)
  const requestId = stored.headers.get('x-service-request-id')!
  const names = ['POST /v1/mutation', 'mutation traced.store', 'commit']
  const spans = await traced(TRACE, ...names)
  const [request, invocation, commit] = names.map((each) => spans.get(each)!)
  const descriptor = readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8')
  const { projectId, environmentId } = JSON.parse(descriptor)
  expect(request).toMatchObject({ parentSpanId: PARENT, kind: 2, traceState: 'rojo=1', status: 0 })
  expect(request!.attributes).toEqual({
    ...{ 'svc.project.id': projectId, 'svc.environment.id': environmentId },
    ...{ 'http.request.method': 'POST', 'http.route': '/v1/mutation' },
    ...{ 'http.response.status_code': 200, 'svc.request.id': requestId },
    ...{ 'svc.client.id': app.clientId, 'svc.credential.id': expect.stringMatching(/^crd_/) },
  })
  expect(invocation).toMatchObject({
    ...{ parentSpanId: request!.spanId, kind: 1, status: 0 },
    attributes: {
      ...{ 'svc.function.name': 'traced.store', 'svc.function.kind': 'mutation' },
      ...{ 'svc.release.id': app.releaseId, 'svc.request.id': requestId },
      'svc.invocation.id': stored.headers.get('x-service-invocation-id'),
      'svc.environment.id': environmentId,
    },
  })
  expect(commit).toMatchObject({
    ...{ parentSpanId: invocation!.spanId, kind: 3, status: 0 },
    attributes: {
      ...{ 'db.system.name': 'sqlite', 'svc.commit.writes': 1, 'svc.commit.attempt': 1 },
      'svc.commit.sequence': Number(stored.body.metadata.commitSequence),
    },
  })
  expect(request!.resource).toMatchObject({ 'service.name': 'svc-server' })
  const records = () =>
    app.installation.svc(['logs', ...remote(), '--json', '--request', requestId])
  const logged = async () => (await records()).stdout.trim()
  await expect.poll(logged, { timeout: 10_000 }).not.toBe('')
  const fields = { trace_id: TRACE, span_id: invocation!.spanId }
  expect(JSON.parse(await logged())).toMatchObject({ event: 'function.log', fields })
})

test('an Action, its callees and the server that it calls are in one trace', async () => {
  const traceId = randomBytes(16).toString('hex')
  const relayed = await action(app, {
    function: 'traced.relay',
    arguments: { key: string(app.key), name: string(canary()) },
    headers: { traceparent: `00-${traceId}-${PARENT}-01` },
  })
  expect(relayed.body.result).toEqual(string('200'))
  const names = ['POST /v1/action', 'action traced.relay', 'mutation traced.store', 'commit']
  const spans = await traced(
    traceId,
    ...names,
    'POST',
    'GET',
    'POST /v1/query',
    'query traced.list',
  )
  const parentOf = (name: string) =>
    [...spans.values()].find(({ spanId }) => spanId === spans.get(name)!.parentSpanId)?.name
  expect(parentOf('action traced.relay')).toBe('POST /v1/action')
  expect(parentOf('mutation traced.store')).toBe('action traced.relay')
  expect(parentOf('commit')).toBe('mutation traced.store')
  expect(parentOf('POST')).toBe('action traced.relay')
  expect(parentOf('POST /v1/query')).toBe('POST')
  expect(parentOf('query traced.list')).toBe('POST /v1/query')
  expect(spans.get('POST')).toMatchObject({
    kind: 3,
    attributes: { 'server.address': 'localhost', 'http.response.status_code': 200 },
  })
  const failed = receiver.spans.filter((span) => span.traceId === traceId && span.name === 'GET')
  const errors = failed.map(({ attributes }) => attributes['error.type']).sort()
  expect(errors).toEqual(['405', 'origin'])
  // A host that the Action does not declare is not shown.
  const hosts = failed.map(({ attributes }) => attributes['server.address'])
  expect(new Set(hosts)).toEqual(new Set([undefined, 'localhost']))
})

test('scheduled work has a trace of its own', async () => {
  const name = string(canary())
  expect((await mutation(app, { function: 'traced.later', arguments: { name } })).status).toBe(200)
  const run = () => receiver.spans.find((span) => span.name === 'scheduled traced.work')
  await expect.poll(run, { timeout: 20_000 }).toBeDefined()
  const { traceId, spanId, parentSpanId, attributes } = run()!
  expect([parentSpanId, attributes['svc.scheduled.outcome']]).toEqual(['', 'succeeded'])
  const spans = await traced(traceId, 'mutation traced.work', 'commit')
  expect(spans.get('mutation traced.work')!.parentSpanId).toBe(spanId)
  expect(spans.get('commit')!.parentSpanId).toBe(spans.get('mutation traced.work')!.spanId)
})

test('a request of an operator has a span, and one without a key has none', async () => {
  const before = receiver.spans.length
  const stranger = randomBytes(16).toString('hex')
  const headers = { traceparent: `00-${stranger}-${PARENT}-01` }
  const key = `rk_sec_v1_${randomBytes(32).toString('base64url')}`
  canaries.push(key)
  const call = { function: 'traced.list', arguments: { of: string('x') }, headers }
  for (const each of [null, key]) {
    expect((await query(app, { ...call, key: each })).status).toBe(401)
  }
  await app.svc(['status', ...remote()])
  const route = expect.stringMatching(/^GET \/v1\/projects\/.*\/status$/)
  const later = () => receiver.spans.slice(before).map(({ name }) => name)
  await expect.poll(later, { timeout: 10_000 }).toContainEqual(route)
  expect(receiver.spans.filter(({ traceId }) => traceId === stranger)).toEqual([])
})

test('a failure has its code, and not its message', async () => {
  const traceId = randomBytes(16).toString('hex')
  const thrown = await mutation(app, {
    ...{ function: 'traced.store', arguments: { name: string(`${canary()}-thrown`) } },
    headers: { traceparent: `00-${traceId}-${PARENT}-01` },
  })
  expect(thrown.status).toBe(500)
  const spans = await traced(traceId, 'POST /v1/mutation', 'mutation traced.store')
  for (const span of spans.values()) {
    expect([span.name, span.status, span.statusMessage]).toEqual([span.name, 2, ''])
  }
  expect(spans.get('mutation traced.store')!.attributes['error.type']).toBe('FUNCTION_FAILED')
  expect(spans.get('POST /v1/mutation')!.attributes['svc.error.code']).toBe('FUNCTION_FAILED')
})

test('no trace, metric, log or archive has a secret, an argument or a stored value', async () => {
  const metrics = await app.svc(['metrics', ...remote()])
  expect(Number(metrics.counters.spansExported)).toBeGreaterThan(10)
  expect(metrics.counters.spansDropped).toBe('0')
  const bodies = receiver.requests.map(({ bytes }, i) => [`trace ${i}`, bytes] as const)
  const plain = (text: Json) => Buffer.from(JSON.stringify(text))
  const files = filesBelow(app.installation.productRoot)
  const logs = [...files].filter(([name]) => name.startsWith('logs'))
  expect(logs.map(([name]) => name)).toContainEqual(expect.stringMatching(/^logs\//))
  const locations = new Map([...bodies, ['metrics', plain(metrics)] as const, ...logs])
  const shown = canaries.filter((each) => locationsOf(each, locations).length > 0)
  expect(shown).toEqual([])
  const said = new Map([['log', Buffer.from(app.server.lines.join('\n'))]])
  expect(canaries.filter((each) => locationsOf(each, said).length > 0)).toEqual([])
})

test('a receiver that is down costs spans alone, and the end does not wait for it', async () => {
  const { port } = receiver
  await receiver[Symbol.asyncDispose]()
  const args = { of: string('y') }
  const calls = await Promise.all(
    Array.from({ length: 50 }, () => query(app, { function: 'traced.list', arguments: args })),
  )
  expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
  const dropped = async () =>
    Number((await app.svc(['metrics', ...remote()])).counters.spansDropped)
  await expect.poll(dropped, { timeout: 30_000 }).toBeGreaterThan(0)
  const warned = app.server.lines.map((line) => JSON.parse(line))
  expect(warned.filter(({ event }) => event === 'traces.dropped')).toHaveLength(1)
  receiver = await OtlpReceiver.start(port)
  receiver.answer = () => ({ isSilent: true })
  await query(app, { function: 'traced.list', arguments: args })
  expect(await app.server.stop()).toBe(0)
  const events = app.server.lines.map((line) => JSON.parse(line).event)
  expect(events).not.toContain('server.close_late')
  expect(events).toContain('server.stopped')
}, 90_000)
