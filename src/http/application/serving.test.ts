/**
 * Tests which Release environment:default serves to each caller, and what an archived Environment
 * still answers. A real Product has real keys and tokens, two Releases, and Functions that wait
 * until a test lets them continue.
 */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { type JwtIssuer, jwtIssuer, jwtProvider } from '../../../testing/providers/jwt-issuers.ts'
import { changeEnvironment, readEnvironment } from '../../product/environments/environments.ts'
import { setServingPolicy } from '../../product/serving/serving-policy.ts'
import { realSystem } from '../../system/system.ts'
import { AUTH_MODES } from '../../value/identities.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { applicationLimits, FAILURE_LIMIT } from '../rate-limits.ts'

const system = realSystem()
const clients = ['confidential', 'public'] as const
const returns = { type: 'any' } as const
const FUNCTIONS = [
  functionManifest('act.slow', {
    kind: 'action',
    clients,
    returns,
    uses: { network: [], secrets: [] },
  }),
  functionManifest('mutate.slow', { kind: 'mutation', clients, returns }),
  ...AUTH_MODES.map((auth) => functionManifest(`query.${auth}`, { auth, clients, returns })),
  functionManifest('query.slow', { clients, returns }),
].toSorted((a, b) => (a.name < b.name ? -1 : 1))

let issuer: JwtIssuer
let gateway: TestGateway
let first: ReleaseId
let second: ReleaseId
/** Slow Functions wait for `hold`; `entered` counts them. */
let hold: PromiseWithResolvers<string>
let entered: number

beforeEach(async () => {
  issuer = await jwtIssuer()
  hold = Promise.withResolvers()
  entered = 0
  const slow = () => {
    entered += 1
    return hold.promise
  }
  const fast = FUNCTIONS.map(({ name }) => [name, () => 'fast'] as const)
  gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: [],
    providers: [jwtProvider({ keys: { uri: issuer.jwksUri } })],
    // No token is gained meanwhile, however long a call takes.
    limits: applicationLimits({ monotonicMillis: () => 0 }),
    handlers: {
      ...Object.fromEntries(fast),
      'query.slow': slow,
      'mutate.slow': slow,
      'act.slow': slow,
    },
  })
  first = gateway.releaseId
  const input = { functions: FUNCTIONS, source: 'second' }
  second = (await publishRelease(gateway.harness, input)).releaseId
})

afterEach(async () => {
  hold.resolve('late')
  await gateway.close()
  await issuer.close()
})

interface Sent {
  readonly target?: string
  readonly key?: string
  readonly affinity?: string
  readonly token?: string
}

async function call(name: string, sent: Sent = {}) {
  const kind = { q: 'query', m: 'mutation', a: 'action' }[name[0]!]!
  const headers = new Headers({
    'content-type': 'application/json',
    'x-service-key': sent.key ?? gateway.key,
  })
  if (sent.affinity !== undefined) headers.set('x-service-affinity', sent.affinity)
  if (sent.token !== undefined) headers.set('authorization', `Bearer ${sent.token}`)
  const envelope = {
    version: 1,
    target: sent.target ?? 'environment:default',
    function: name,
    arguments: { type: 'object', value: [] },
    ...(kind === 'mutation' && { operationId: system.ids.make('opn') }),
  }
  const url = `http://app.test/v1/${kind}`
  const request = new Request(url, { method: 'POST', headers, body: JSON.stringify(envelope) })
  const response = await gateway.application.fetch(request)
  const body = (await response.json()) as {
    readonly error?: { readonly code: string; readonly retryable: boolean }
  }
  const releaseId = response.headers.get('x-service-release-id')
  return { status: response.status, releaseId, error: body.error }
}

const outcome = async (name: string, sent: Sent = {}) => {
  const { status, error } = await call(name, sent)
  return error === undefined ? `${status}` : `${status} ${error.code}`
}

/** Weights of the first and of the second Release, the older ID first. */
async function serve(weights: readonly [number, number], expectedRevision = 0n): Promise<void> {
  const { product, actor } = gateway.harness
  const releases = [first, second]
    .map((releaseId, i) => ({ releaseId, weight: weights[i]! }))
    .filter(({ weight }) => weight > 0)
  await setServingPolicy(product, actor, {
    operationId: system.ids.make('opn'),
    expectedRevision,
    mode: releases.length === 1 ? 'atomic' : 'weighted',
    releases,
    changedAtMicros: gateway.harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
  await product.serving.whenIdle()
}

function change(verb: 'archive' | 'restore', expectedRevision: bigint) {
  const { product, actor } = gateway.harness
  return changeEnvironment(product, actor, {
    operationId: system.ids.make('opn'),
    change: { verb, expectedRevision },
    changedAtMicros: gateway.harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
}

const observed = () => readEnvironment(gateway.harness.product).observed
const token = (sub: string) => issuer.sign(issuer.claims(system.nowMillis(), { sub }))

async function releasesOf(count: number, name: string, sent: (i: number) => Sent | Promise<Sent>) {
  const found: (string | null)[] = []
  for (let i = 0; i < count; i++) found.push((await call(name, await sent(i))).releaseId)
  return found
}

describe('environment:default', () => {
  test('environment:default serves no Channel and no Release without a policy', async () => {
    expect(await outcome('query.none')).toBe('404 TARGET_NOT_FOUND')
  })

  test('environment:default moves to the one Release of a policy for every call', {
    tags: ['slow'],
  }, async () => {
    hold.resolve('now')
    await serve([0, 10_000])
    for (const name of ['query.none', 'mutate.slow', 'act.slow']) {
      expect(await call(name)).toMatchObject({ status: 200, releaseId: second })
    }
    await serve([10_000, 0], 1n)
    expect(await call('query.none')).toMatchObject({ status: 200, releaseId: first })
  })

  test('environment:default distributes unidentified callers by weight', {
    tags: ['slow'],
  }, async () => {
    await serve([8_000, 2_000])
    const found = await releasesOf(1_000, 'query.none', () => ({}))
    // 1,000 draws at one in five: five standard deviations are 63.
    const seconds = found.filter((releaseId) => releaseId === second).length
    expect(seconds).toBeGreaterThan(137)
    expect(seconds).toBeLessThan(263)
  })

  test('equal affinities reach one Release, and affinities are distributed by weight', {
    tags: ['slow'],
  }, async () => {
    await serve([5_000, 5_000])
    const once = await releasesOf(60, 'query.none', (i) => ({ affinity: `device-${i}` }))
    const again = await releasesOf(60, 'query.none', (i) => ({ affinity: `device-${i}` }))
    expect(again).toEqual(once)
    expect(new Set(once)).toEqual(new Set([first, second]))
  })

  test('a principal reaches one Release with every token and Function', async () => {
    await serve([5_000, 5_000])
    const releases = (name: string) =>
      releasesOf(40, name, async (i) => ({ token: await token(`user-${i}`) }))
    const once = await releases('query.user')
    expect(await releases('query.user')).toEqual(once)
    expect(await releases('query.none')).toEqual(once)
    expect(new Set(once)).toEqual(new Set([first, second]))
  })

  test('equal affinities of two credentials are distinguished', { tags: ['slow'] }, async () => {
    await serve([5_000, 5_000])
    const key = gateway.issueKey('confidential')
    const one = await releasesOf(60, 'query.none', (i) => ({ affinity: `${i}` }))
    const other = await releasesOf(60, 'query.none', (i) => ({ affinity: `${i}`, key }))
    expect(other).not.toEqual(one)
  })

  test('few callers move when the weights change', { tags: ['slow'] }, async () => {
    const releases = () => releasesOf(200, 'query.none', (i) => ({ affinity: `device-${i}` }))
    await serve([9_000, 1_000])
    const before = await releases()
    await serve([7_000, 3_000], 1n)
    const after = await releases()
    const movedTo = after.filter((releaseId, i) => releaseId !== before[i])
    // No caller leaves the Release whose weight grew.
    expect(new Set(movedTo)).toEqual(new Set([second]))
    expect(movedTo.length).toBeLessThan(80)
  })

  const tokens: readonly (readonly [string, string, string])[] = [
    ['query.none', 'nonsense', '200'],
    ['query.optional', 'nonsense', '401 FUNCTIONAL_TOKEN_INVALID'],
    ['query.user', 'nonsense', '401 FUNCTIONAL_TOKEN_INVALID'],
  ]
  test.each(tokens)(
    'a Function of the mode %s answers to a bad token as at a Channel',
    { tags: ['slow'] },
    async (name, bad, expected) => {
      await serve([5_000, 5_000])
      expect(await outcome(name, { token: bad })).toBe(expected)
      expect(await outcome(name, { token: bad, target: 'channel:production' })).toBe(expected)
    },
  )

  test('an invalid token is counted once', { tags: ['slow'] }, async () => {
    await serve([5_000, 5_000])
    const key = gateway.issueKey('public')
    let guesses = 0
    while ((await outcome('query.user', { key, token: `guess-${guesses}` })).startsWith('401')) {
      guesses += 1
    }
    expect(guesses).toBe(FAILURE_LIMIT.burst)
  })

  test.each(['', 'two words', 'x'.repeat(129), 'é'])(
    'the affinity %j is rejected',
    { tags: ['slow'] },
    async (affinity) => {
      await serve([5_000, 5_000])
      expect(await outcome('query.none', { affinity })).toBe('400 REQUEST_INVALID')
    },
  )
})

test('readiness fails while no target can be served, and recovers by itself', {
  tags: ['slow'],
}, async () => {
  const { product, directory } = gateway.harness
  const ready = async () =>
    (await gateway.application.fetch(new Request('http://app.test/readyz'))).status
  expect(await ready()).toBe(200)
  const files = join(directory, 'artifacts/sha256')
  renameSync(files, `${files}-away`)
  product.serving.stop()
  product.releases.forget(first)
  // As at the start of a server.
  product.serving.start()
  await product.serving.whenIdle()
  expect(await ready()).toBe(503)
  expect(await outcome('query.none', { target: 'channel:production' })).toBe('503 UNAVAILABLE')
  renameSync(`${files}-away`, files)
  gateway.harness.system.advance(1_000)
  await expect.poll(ready, { timeout: 60_000 }).toBe(200)
  expect(await outcome('query.none', { target: 'channel:production' })).toBe('200')
})

describe('an archived Environment', () => {
  test('an archived Environment completes calls in flight and rejects later ones', {
    tags: ['slow'],
  }, async () => {
    await serve([5_000, 5_000])
    const target = 'channel:production'
    const slow = ['query.slow', 'mutate.slow', 'act.slow'].map((name) => outcome(name, { target }))
    await expect.poll(() => entered).toBe(3)
    change('archive', 0n)
    const ready = await gateway.application.fetch(new Request('http://app.test/readyz'))
    expect(ready.status).toBe(503)
    const targets = ['environment:default', target, `release:${first}`, 'workspace:default']
    for (const each of targets) {
      const { status, error } = await call('query.none', { target: each })
      expect([each, status, error]).toMatchObject([
        each,
        503,
        { code: 'UNAVAILABLE', retryable: true },
      ])
    }
    expect(observed()).toEqual({ revision: '0', lifecycle: 'active', serving: 'stopped' })
    hold.resolve('in time')
    expect(await Promise.all(slow)).toEqual(['200', '200', '200'])
    await expect.poll(observed).toEqual({
      revision: '1',
      lifecycle: 'archived',
      serving: 'stopped',
    })
  })

  test('an archived Environment returns no cached results', { tags: ['slow'] }, async () => {
    const sent = { target: 'channel:production' }
    for (let i = 0; i < 3; i++) expect(await outcome('query.none', sent)).toBe('200')
    change('archive', 0n)
    expect(await outcome('query.none', sent)).toBe('503 UNAVAILABLE')
  })

  test('an archived Environment rejects a call whose body had not arrived yet', {
    tags: ['slow'],
  }, async () => {
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const request = new Request('http://app.test/v1/query', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-key': gateway.key },
      body: body.readable,
    })
    const pending = gateway.application.fetch(request)
    change('archive', 0n)
    const writer = body.writable.getWriter()
    const envelope = {
      version: 1,
      target: 'channel:production',
      function: 'query.none',
      arguments: { type: 'object', value: [] },
    }
    await writer.write(new TextEncoder().encode(JSON.stringify(envelope)))
    await writer.close()
    expect((await pending).status).toBe(503)
  })

  test('a restored Environment serves its Channels and its policy again', {
    tags: ['slow'],
  }, async () => {
    await serve([0, 10_000])
    change('archive', 0n)
    change('restore', 1n)
    await gateway.harness.product.serving.whenIdle()
    expect(await call('query.none')).toMatchObject({ status: 200, releaseId: second })
    const channel = await call('query.none', { target: 'channel:production' })
    expect(channel).toMatchObject({ status: 200, releaseId: first })
    const expected = { revision: '2', lifecycle: 'active', serving: 'serving' }
    await expect.poll(observed).toEqual(expected)
  })
})
