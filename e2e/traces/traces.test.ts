/**
 * Traces that the compiled server sends to a receiver of OTLP/HTTP.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { s3ClientOf } from '../../testing/files/s3-remotes.ts'
import { openRealtimeClient } from '../../testing/realtime-clients.ts'
import { OtlpReceiver, type ReceivedSpan } from '../../testing/servers/otlp-receiver.ts'
import { freePort } from '../../testing/servers/ports.ts'
import { ANSWERING_PROCESSES } from '../../testing/servers/server-process.ts'
import {
  type Application,
  action,
  application,
  createKey,
  type Json,
  mutation,
  object,
  operationId,
  query,
  send,
  string,
} from '../application.ts'
import { argv } from '../argv.ts'
import { filesBelow, findLocations } from '../canaries.ts'
import { CLIENT, run } from '../harness.ts'
import { callerTrace, PARENT, tracedFunctions } from './callers.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const secret = randomBytes(32).toString('hex')
const otlpKey = randomBytes(32).toString('base64url')

let app: Application
let receiver: OtlpReceiver
const remote = () => argv`--remote --root ${app.installation.productRoot}`
const canaries: string[] = []

/** Makes a value that no trace may contain. */
function canary(): string {
  const value = `canary-${randomBytes(16).toString('hex')}`
  canaries.push(value)
  return value
}

beforeAll(async () => {
  // Started again at its address, which no other program may be given meanwhile.
  receiver = await OtlpReceiver.start(await freePort())
  const port = await freePort()
  app = await application(
    (workspace) => writeFileSync(join(workspace, 'functions', 'traced.ts'), tracedFunctions(port)),
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
  const set = await run(argv`${CLIENT} config set API_KEY --secret ${remote()}`, {
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
  await expect.poll(found).toEqual(expect.arrayContaining(names))
  return new Map(spans().map((span) => [span.name, span]))
}

test('a call, its invocation and its commit are connected, also to the log', async () => {
  const { traceId, headers } = callerTrace()
  const stored = await mutation(app, {
    function: 'traced.store',
    arguments: { name: string(canary()) },
    headers: { ...headers, tracestate: 'rojo=1' },
  })
  expect(stored.status).toBe(200)
  const requestId = stored.headers.get('x-service-request-id')!
  const names = ['POST /v1/mutation', 'mutation traced.store', 'commit']
  const spans = await traced(traceId, ...names)
  const [request, invocation, commit] = names.map((each) => spans.get(each)!)
  const descriptor = readFileSync(join(app.installation.productRoot, 'service.json'), 'utf8')
  const { projectId, environmentId } = JSON.parse(descriptor)
  expect(request).toMatchObject({ parentSpanId: PARENT, kind: 2, traceState: 'rojo=1', status: 0 })
  expect(request!.attributes).toEqual({
    'svc.project.id': projectId,
    'svc.environment.id': environmentId,
    'http.request.method': 'POST',
    'http.route': '/v1/mutation',
    'http.response.status_code': 200,
    'svc.request.id': requestId,
    'svc.client.id': app.clientId,
    'svc.credential.id': expect.stringMatching(/^crd_/),
  })
  expect(invocation).toMatchObject({
    parentSpanId: request!.spanId,
    kind: 1,
    status: 0,
    attributes: {
      'svc.function.name': 'traced.store',
      'svc.function.kind': 'mutation',
      'svc.release.id': app.releaseId,
      'svc.request.id': requestId,
      'svc.invocation.id': stored.headers.get('x-service-invocation-id'),
      'svc.environment.id': environmentId,
    },
  })
  expect(commit).toMatchObject({
    parentSpanId: invocation!.spanId,
    kind: 3,
    status: 0,
    attributes: {
      'db.system.name': 'sqlite',
      'svc.commit.writes': 1,
      'svc.commit.attempt': 1,
      'svc.commit.sequence': Number(stored.body.metadata.commitSequence),
    },
  })
  expect(request!.resource).toMatchObject({ 'service.name': 'svc-server' })
  const records = () => app.installation.svc(argv`logs ${remote()} --json --request ${requestId}`)
  const logged = async () => (await records()).stdout.trim()
  await expect.poll(logged).not.toBe('')
  const fields = { trace_id: traceId, span_id: invocation!.spanId }
  expect(JSON.parse(await logged())).toMatchObject({ event: 'function.log', fields })
})

test('an Action, its callees and the server that it calls are in one trace', async () => {
  const { traceId, headers } = callerTrace()
  const relayed = await action(app, {
    function: 'traced.relay',
    arguments: { key: string(app.key), name: string(canary()) },
    headers,
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
  await expect.poll(run).toBeDefined()
  const { traceId, spanId, parentSpanId, attributes } = run()!
  expect([parentSpanId, attributes['svc.scheduled.outcome']]).toEqual(['', 'succeeded'])
  const spans = await traced(traceId, 'mutation traced.work', 'commit')
  expect(spans.get('mutation traced.work')!.parentSpanId).toBe(spanId)
  expect(spans.get('commit')!.parentSpanId).toBe(spans.get('mutation traced.work')!.spanId)
})

test('a request of an operator has a span, and one without a key has none', async () => {
  const before = receiver.spans.length
  const { traceId: stranger, headers } = callerTrace()
  const key = `rk_sec_v1_${randomBytes(32).toString('base64url')}`
  canaries.push(key)
  const call = { function: 'traced.list', arguments: { of: string('x') }, headers }
  for (const each of [null, key]) {
    expect((await query(app, { ...call, key: each })).status).toBe(401)
  }
  await app.svc(argv`status ${remote()}`)
  const route = expect.stringMatching(/^GET \/v1\/projects\/.*\/status$/)
  const later = () => receiver.spans.slice(before).map(({ name }) => name)
  await expect.poll(later).toContainEqual(route)
  expect(receiver.spans.filter(({ traceId }) => traceId === stranger)).toEqual([])
})

test('a failure has its code, and not its message', async () => {
  const { traceId, headers } = callerTrace()
  const thrown = await mutation(app, {
    function: 'traced.store',
    arguments: { name: string(`${canary()}-thrown`) },
    headers,
  })
  expect(thrown.status).toBe(500)
  const spans = await traced(traceId, 'POST /v1/mutation', 'mutation traced.store')
  for (const span of spans.values()) {
    expect([span.name, span.status, span.statusMessage]).toEqual([span.name, 2, ''])
  }
  expect(spans.get('mutation traced.store')!.attributes['error.type']).toBe('FUNCTION_FAILED')
  expect(spans.get('POST /v1/mutation')!.attributes['svc.error.code']).toBe('FUNCTION_FAILED')
})

test('a change of Data Admin and its commit are in the trace of the operator', async () => {
  const { server, installation } = app
  const read = (path: string) =>
    JSON.parse(readFileSync(join(installation.directory, path), 'utf8'))
  const { projectId, environmentId } = read('product/service.json')
  const base = `/v1/projects/${projectId}/environments/${environmentId}`
  const documentId = operationId().replace('opn_', 'channels_')
  const common = { target: 'channel:production', changedAtMicros: `${Date.now()}000` }
  const value = object({ name: string(canary()) })
  const changes = [
    ['/data/documents/:table', { documentId, value }, 201],
    ['/data/import', { table: 'channels', documents: [{ documentId, value }] }, 200],
  ] as const
  for (const [route, body, status] of changes) {
    const { traceId, headers } = callerTrace()
    const reply = await send(
      server.management,
      'POST',
      base + route.replace(':table', 'channels'),
      {
        token: read('config/credentials-v1.json').accessToken,
        headers: { ...headers, 'idempotency-key': operationId() },
        body: { ...common, ...body },
      },
    )
    expect([reply.status, reply.body.error]).toEqual([status, undefined])
    const name = `POST /v1/projects/:projectId/environments/:environmentId${route}`
    const spans = await traced(traceId, name, 'commit')
    expect(spans.get(name)).toMatchObject({ parentSpanId: PARENT, kind: 2 })
    const writes = route === '/data/import' ? 0 : 1
    expect(spans.get('commit')).toMatchObject({
      parentSpanId: spans.get(name)!.spanId,
      kind: 3,
      attributes: { 'svc.commit.writes': writes, 'svc.commit.outcome': 'durable' },
    })
  }
})

test('a request of an S3 client has a span, and one with a wrong signature has none', async () => {
  await app.svc(argv`buckets create traced ${remote()}`)
  const keys = await app.svc(argv`buckets keys issue traced --name one --access write ${remote()}`)
  canaries.push(keys.secretAccessKey)
  const Key = canary()
  const endpoint = `${app.server.application}/v1/s3`
  const requestTo = async (client: S3Client, headers: Record<string, string>) => {
    const url = await getSignedUrl(client, new PutObjectCommand({ Bucket: 'traced', Key }))
    return fetch(url, { method: 'PUT', headers, body: canary() })
  }
  const { traceId, headers } = callerTrace()
  const stored = await requestTo(s3ClientOf({ endpoint, keys }), headers)
  expect(stored.status).toBe(200)
  const name = 'PUT /v1/s3/:bucket/:key'
  const spans = await traced(traceId, name)
  const { accessKeyId } = keys
  expect(spans.get(name)).toMatchObject({ parentSpanId: PARENT, kind: 2, status: 0 })
  expect(spans.get(name)!.attributes).toMatchObject({
    'http.request.method': 'PUT',
    'http.route': '/v1/s3/:bucket/:key',
    'http.response.status_code': 200,
    'svc.storage_key.id': keys.storageKeyId,
    'svc.request.id': stored.headers.get('x-service-request-id'),
  })
  const stranger = callerTrace()
  const forged = { accessKeyId, secretAccessKey: canary() }
  const rejected = await requestTo(s3ClientOf({ endpoint, keys: forged }), stranger.headers)
  expect(rejected.status).toBe(403)
  const missing = callerTrace()
  const url = await getSignedUrl(
    s3ClientOf({ endpoint, keys }),
    new GetObjectCommand({ Bucket: 'traced', Key: canary() }),
  )
  expect((await fetch(url, { headers: missing.headers })).status).toBe(404)
  const failed = await traced(missing.traceId, 'GET /v1/s3/:bucket/:key')
  expect([...failed.values()][0]!.attributes['svc.error.code']).toBe('NoSuchKey')
  expect(receiver.spans.filter((span) => span.traceId === stranger.traceId)).toEqual([])
})

test('the operations of a Realtime connection are in the trace of its upgrade', async () => {
  const { key, clientId } = await createKey(app, { scopes: 'query,realtime' })
  canaries.push(key)
  const { traceId, headers } = callerTrace()
  const client = await openRealtimeClient(app.server.application!, headers)
  const subscribe = (subscriptionId: string, name = 'traced.list') => {
    const target = { target: 'channel:production', function: name }
    const of = string(canary())
    client.send({ type: 'subscribe', subscriptionId, ...target, arguments: object({ of }) })
  }
  client.send({ type: 'authenticate', applicationKey: key })
  const { sessionId } = await client.next('authenticated')
  subscribe('first')
  const { snapshotSequence } = await client.next('state')
  const names = ['realtime authenticate', 'realtime subscribe']
  const causes = ['watch traced.list', 'query traced.list']
  const spans = await traced(traceId, ...names, ...causes)
  for (const name of names) {
    expect(spans.get(name)).toMatchObject({
      parentSpanId: PARENT,
      kind: 2,
      status: 0,
      attributes: {
        'http.route': '/v1/realtime',
        'svc.request.id': sessionId,
        'svc.client.id': clientId,
        'svc.credential.id': expect.stringMatching(/^crd_/),
      },
    })
  }
  const [first, watch, run] = ['realtime subscribe', ...causes].map((name) => spans.get(name)!)
  expect(first!.attributes).toMatchObject({
    'svc.function.name': 'traced.list',
    'svc.release.id': app.releaseId,
    'svc.snapshot.sequence': Number(snapshotSequence),
  })
  expect([watch!.parentSpanId, run!.parentSpanId]).toEqual([first!.spanId, watch!.spanId])

  // What a commit causes belongs to no subscriber.
  await mutation(app, { function: 'traced.store', arguments: { name: string(canary()) } })
  await client.next('state')
  const isRerun = ({ name, parentSpanId }: ReceivedSpan) =>
    name === 'watch traced.list' && parentSpanId === ''
  await expect.poll(() => receiver.spans.some(isRerun)).toBe(true)

  subscribe('unknown', 'traced.none')
  await client.next('error')
  subscribe('left')
  client.send({ type: 'unsubscribe', subscriptionId: 'left' })
  await client.next('unsubscribed')
  client.close()
  const ended = () =>
    receiver.spans
      .filter((span) => span.traceId === traceId && span.name === 'realtime subscribe')
      .map(({ attributes }) => attributes['svc.error.code'] ?? attributes['svc.snapshot.sequence'])
  // The last one ends without a state, unless its first run is faster than the next message.
  await expect.poll(ended).toHaveLength(3)
  expect(ended().slice(0, 2)).toEqual([Number(snapshotSequence), 'FUNCTION_NOT_FOUND'])
})

test('a Realtime connection without a valid key has no span', async () => {
  const { traceId, headers } = callerTrace()
  const client = await openRealtimeClient(app.server.application!, headers)
  const applicationKey = `rk_sec_v1_${randomBytes(32).toString('base64url')}`
  canaries.push(applicationKey)
  client.send({ type: 'authenticate', applicationKey })
  expect(await client.closed()).toBe(1008)
  const { headers: later, traceId: laterId } = callerTrace()
  await query(app, { function: 'traced.list', arguments: { of: string('x') }, headers: later })
  await traced(laterId, 'POST /v1/query')
  expect(receiver.spans.filter((span) => span.traceId === traceId)).toEqual([])
})

test('no trace, metric, log or archive has a secret, an argument or a stored value', async () => {
  const metrics = await app.svc(argv`metrics ${remote()}`)
  expect(Number(metrics.counters.spansExported)).toBeGreaterThan(10)
  expect(metrics.counters.spansDropped).toBe('0')
  const bodies = receiver.requests.map(({ bytes }, i) => [`trace ${i}`, bytes] as const)
  const plain = (text: Json) => Buffer.from(JSON.stringify(text))
  const files = filesBelow(app.installation.productRoot)
  const logs = [...files].filter(([name]) => name.startsWith('logs'))
  expect(logs.map(([name]) => name)).toContainEqual(expect.stringMatching(/^logs\//))
  const locations = new Map([...bodies, ['metrics', plain(metrics)] as const, ...logs])
  const shown = canaries.filter((each) => findLocations(each, locations).length > 0)
  expect(shown).toEqual([])
  const serverLog = new Map([['log', Buffer.from(app.server.lines.join('\n'))]])
  expect(canaries.filter((each) => findLocations(each, serverLog).length > 0)).toEqual([])
})

test('a receiver that is down costs only spans, and no shutdown waits for it', async () => {
  const { port } = receiver
  await receiver[Symbol.asyncDispose]()
  const args = { of: string('y') }
  const calls = await Promise.all(
    Array.from({ length: 50 }, () => query(app, { function: 'traced.list', arguments: args })),
  )
  expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
  // A server that is down for 10 seconds loses the spans; the short suite rejects them instead.
  if (!LONG) {
    receiver = await OtlpReceiver.start(port)
    receiver.answer = () => ({ status: 400 })
  }
  const dropped = async () =>
    Number((await app.svc(argv`metrics ${remote()}`)).counters.spansDropped)
  await expect.poll(dropped, { interval: 500 }).toBeGreaterThan(0)
  const drops = () => app.server.lines.filter((line) => line.includes('"traces.dropped"'))
  await expect.poll(() => drops().length).toBeGreaterThan(0)
  // Each process that exports spans logs it once a minute.
  const exporting = ANSWERING_PROCESSES === 1 ? 1 : ANSWERING_PROCESSES + 1
  expect(drops().length).toBeLessThanOrEqual(exporting)
  if (LONG) receiver = await OtlpReceiver.start(port)
  receiver.answer = () => ({ isSilent: true })
  await query(app, { function: 'traced.list', arguments: args })
  expect(await app.server.stop()).toBe(0)
  const events = app.server.lines.map((line) => JSON.parse(line).event)
  expect(events).not.toContain('server.close_late')
  expect(events).toContain('server.stopped')
}, 300_000)
