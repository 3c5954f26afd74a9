/**
 * Tests that an exact repeat of a committed Mutation returns the original result, even if the code
 * changed since. A real Product has real keys and tokens, and a Channel or a policy that moves
 * between the two requests.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../../../testing/gateways.ts'
import { functionManifest, publishRelease, REQUEST_ID } from '../../../testing/products.ts'
import { type JwtIssuer, jwtIssuer, jwtProvider } from '../../../testing/providers/jwt-issuers.ts'
import { createCredential } from '../../product/application-clients/application-keys.ts'
import { promote } from '../../product/channels/promote.ts'
import { retire } from '../../product/releases/retire.ts'
import { setServingPolicy } from '../../product/serving/serving-policy.ts'
import { realSystem } from '../../system/system.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import { principalOf } from '../../value/identities.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { FunctionManifest } from '../../value/manifest.ts'

const system = realSystem()
const ANY = { type: 'any' } as const
const write = (more: Partial<FunctionManifest> = {}) =>
  functionManifest('notes.write', {
    kind: 'mutation',
    clients: ['confidential', 'public'],
    arguments: { text: { type: 'string' } },
    returns: ANY,
    ...more,
  })

let issuer: JwtIssuer
let gateway: TestGateway
let releases = 0
/** Release of the Channel `production`, which each test binds anew. */
let bound: ReleaseId
/** Number of runs of the Function. The next runs wait for `hold`. */
let runs = 0
let hold: Promise<unknown> = Promise.resolve()

beforeAll(async () => {
  issuer = await jwtIssuer()
  gateway = await openTestGateway({
    functions: [write()],
    tables: [],
    providers: [jwtProvider({ keys: { uri: issuer.jwksUri } })],
    handlers: {
      'notes.write': async () => {
        runs += 1
        const result = `run ${runs}`
        await hold
        return result
      },
    },
  })
  bound = gateway.releaseId
})

beforeEach(() => {
  runs = 0
})

afterAll(() => Promise.all([gateway.close(), issuer.close()]))

async function release(...functions: readonly FunctionManifest[]): Promise<ReleaseId> {
  releases += 1
  const source = `release ${releases}`
  return (await publishRelease(gateway.harness, { functions, source })).releaseId
}

async function bind(releaseId: ReleaseId): Promise<void> {
  const { product, actor } = gateway.harness
  const to = { channel: 'production', releaseId, expectedReleaseId: bound, requestId: REQUEST_ID }
  await promote(product, actor, to)
  await product.serving.whenIdle()
  bound = releaseId
}

let policies = 0n
async function serve(...served: readonly ReleaseId[]): Promise<void> {
  const { product, actor } = gateway.harness
  const weight = 10_000 / served.length
  await setServingPolicy(product, actor, {
    operationId: system.ids.make('opn'),
    expectedRevision: policies,
    mode: served.length === 1 ? 'atomic' : 'weighted',
    releases: served.map((releaseId) => ({ releaseId, weight })),
    changedAtMicros: gateway.harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
  policies += 1n
  await product.serving.whenIdle()
}

interface Sent {
  readonly operationId?: string
  readonly target?: string
  readonly text?: string
  readonly key?: string
  readonly token?: string | undefined
}

async function send(sent: Sent = {}) {
  const headers = new Headers({
    'content-type': 'application/json',
    'x-service-key': sent.key ?? gateway.key,
  })
  if (sent.token !== undefined) headers.set('authorization', `Bearer ${sent.token}`)
  const text = { type: 'string', value: sent.text ?? 'a note' }
  const envelope = {
    version: 1,
    target: sent.target ?? 'channel:production',
    function: 'notes.write',
    arguments: { type: 'object', value: [{ key: 'text', value: text }] },
    operationId: sent.operationId ?? system.ids.make('opn'),
  }
  const body = JSON.stringify(envelope)
  const request = new Request('http://app.test/v1/mutation', { method: 'POST', headers, body })
  const response = await gateway.application.fetch(request)
  const answer = (await response.json()) as {
    readonly releaseId?: string
    readonly result?: { readonly value: string }
    readonly metadata?: { readonly replayed: boolean }
    readonly error?: { readonly code: string }
  }
  const { releaseId, result, metadata } = answer
  const outcome = answer.error === undefined ? `${response.status}` : answer.error.code
  return { outcome, releaseId, result: result?.value, replayed: metadata?.replayed }
}

/** A key of another credential of the Client that `gateway.key` belongs to. */
function siblingKey(scopes: readonly ApplicationScope[] = ['mutation']): string {
  const { product, actor } = gateway.harness
  const { key } = createCredential(product, actor, {
    clientId: product.keys.authenticate(gateway.key)!.clientId,
    credentialId: system.ids.make('crd'),
    name: 'sibling',
    scopes: [...scopes],
    rateLimit: null,
    createdAtMicros: gateway.harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
  return key!.reveal()
}

async function retireRelease(releaseId: ReleaseId): Promise<void> {
  // The head of a Workspace is in use.
  await release()
  const { product, actor } = gateway.harness
  retire(product, actor, { releaseId, requestId: REQUEST_ID })
}

const tokenOf = (sub: string) => issuer.sign(issuer.claims(system.nowMillis(), { sub }))

const strict = { text: { type: 'string', maximumLength: 1 } } as const
const user = { auth: 'user' } as const
/** Old manifest, new manifests, answer to new Mutations, and the token of the caller. */
const CHANGES: readonly (readonly [
  string,
  FunctionManifest,
  FunctionManifest[],
  string,
  boolean,
])[] = [
  ['the Function is gone', write(), [], 'FUNCTION_NOT_FOUND', false],
  ['it is internal', write(), [write({ visibility: 'internal' })], 'FUNCTION_NOT_FOUND', false],
  ['its validator is tighter', write(), [write({ arguments: strict })], 'ARGUMENTS_INVALID', false],
  [
    'it is for other clients',
    write(),
    [write({ clients: ['public'] })],
    'AUTH_POLICY_DENIED',
    false,
  ],
  ['it asks for a user', write(), [write(user)], 'FUNCTIONAL_TOKEN_REQUIRED', false],
  ['it sees its user', write(), [write(user)], '200', true],
  ['it ignores the identity', write(user), [write()], '200', true],
  ['a user may see it', write(), [write({ auth: 'optional' })], '200', true],
  ['it is gone for users', write(user), [], 'FUNCTION_NOT_FOUND', true],
  ['it is for services', write(user), [write({ auth: 'service' })], 'AUTH_POLICY_DENIED', true],
]

describe('an exact repeat', () => {
  test.each(CHANGES)(
    'an exact repeat has the original result although %s',
    { tags: ['slow'] },
    async (_, before, after, says, signed) => {
      const token = signed ? await tokenOf('user-1') : undefined
      const operationId = system.ids.make('opn')
      await bind(await release(before))
      const original = await send({ operationId, token })
      const made = { outcome: '200', releaseId: bound, result: 'run 1' }
      expect(original).toEqual({ ...made, replayed: false })
      await bind(await release(...after))
      expect((await send({ token })).outcome).toBe(says)
      const ran = runs
      const again = signed ? await tokenOf('user-1') : undefined
      expect(await send({ operationId, token: again })).toEqual({ ...made, replayed: true })
      expect(runs).toBe(ran)
    },
  )

  test.each([
    ['while its Function exists', [write()]],
    ['after its Function was removed', []],
  ])(
    'a repeat under another credential of the Client has the original result %s',
    async (_, after) => {
      await bind(await release(write()))
      const operationId = system.ids.make('opn')
      const original = await send({ operationId })
      await bind(await release(...after))
      const repeat = await send({ operationId, key: siblingKey() })
      expect(repeat).toEqual({ ...original, replayed: true })
      expect(runs).toBe(1)
    },
  )

  test('an exact repeat has the original result although its Release was retired', async () => {
    const releaseId = await release(write())
    const same = { operationId: system.ids.make('opn'), target: `release:${releaseId}` }
    const original = await send(same)
    expect(original).toMatchObject({ outcome: '200', replayed: false })
    await retireRelease(releaseId)
    expect(await send(same)).toEqual({ ...original, replayed: true })
    const { target } = same
    expect((await send({ target })).outcome).toBe('RELEASE_RETIRED')
    expect((await send({ ...same, text: 'another note' })).outcome).toBe('OPERATION_REUSED')
  })

  test('an exact repeat waits for an original that is still running', async () => {
    await bind(await release(write(user)))
    const { promise, resolve } = Promise.withResolvers<void>()
    hold = promise
    const same = { operationId: system.ids.make('opn'), token: await tokenOf('user-1') }
    const original = send(same)
    await expect.poll(() => runs).toBe(1)
    await bind(await release())
    const repeat = send(same)
    resolve()
    expect(await original).toMatchObject({ result: 'run 1', replayed: false })
    expect(await repeat).toMatchObject({ result: 'run 1', replayed: true })
  })

  test('a weighted policy sends an exact repeat to the Release of its original', {
    tags: ['slow'],
  }, async () => {
    await serve(await release(write()), await release())
    const target = 'environment:default'
    const firsts = new Set<string>()
    for (let i = 0; i < 24; i++) {
      const same = { operationId: system.ids.make('opn'), target }
      const { outcome } = await send(same)
      firsts.add(outcome)
      for (let j = 0; j < 4; j++) expect((await send(same)).outcome).toBe(outcome)
    }
    expect(firsts).toEqual(new Set(['200', 'FUNCTION_NOT_FOUND']))
  })

  test('an exact repeat has the original result after the weights changed', async () => {
    await serve(await release(write()))
    const same = { operationId: system.ids.make('opn'), target: 'environment:default' }
    expect((await send(same)).outcome).toBe('200')
    await serve(await release())
    expect(await send(same)).toMatchObject({ outcome: '200', replayed: true })
  })
})

describe('requests that are not exact repeats', () => {
  const CHANGED: readonly (readonly [string, () => Promise<Sent> | Sent])[] = [
    ['another operation ID', () => ({ operationId: system.ids.make('opn') })],
    ['other arguments', () => ({ text: 'another note' })],
    ['another key', () => ({ key: gateway.issueKey('confidential') })],
    ['another user', async () => ({ token: await tokenOf('user-2') })],
    ['no token', () => ({ token: undefined })],
    ['a bad token', () => ({ token: 'nonsense' })],
  ]
  test.each(CHANGED)('a repeat with %s is rejected as a new call', async (_, change) => {
    await bind(await release(write(user)))
    const same = { operationId: system.ids.make('opn'), token: await tokenOf('user-1') }
    expect((await send(same)).outcome).toBe('200')
    await bind(await release())
    const changed = { ...same, ...(await change()) }
    expect((await send(changed)).outcome).toBe('FUNCTION_NOT_FOUND')
  })

  test('a repeat with another target is rejected as a new call', async () => {
    await serve(await release(write()))
    const operationId = system.ids.make('opn')
    expect((await send({ operationId, target: 'environment:default' })).outcome).toBe('200')
    await bind(await release())
    expect((await send({ operationId })).outcome).toBe('FUNCTION_NOT_FOUND')
  })

  test('a repeat with an invalid token is rejected if the Function now requires one', async () => {
    await bind(await release(write()))
    const same = { operationId: system.ids.make('opn'), token: 'nonsense' }
    expect((await send(same)).outcome).toBe('200')
    await bind(await release(write(user)))
    expect((await send(same)).outcome).toBe('FUNCTIONAL_TOKEN_INVALID')
  })

  test('a repeat under a credential of the Client without the scope is rejected', async () => {
    await bind(await release(write()))
    const same = { operationId: system.ids.make('opn') }
    expect((await send(same)).outcome).toBe('200')
    const key = siblingKey(['query'])
    expect((await send({ ...same, key })).outcome).toBe('AUTH_POLICY_DENIED')
    await bind(await release())
    expect((await send({ ...same, key })).outcome).toBe('FUNCTION_NOT_FOUND')
  })
})

describe('a Function that takes callers with a token and without', () => {
  const CALLERS: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['no token, then one', undefined, 'user-1'],
    ['a token, then none', 'user-1', undefined],
    ['one user, then another', 'user-1', 'user-2'],
  ]
  test.each(CALLERS)(
    'an operation that is repeated with another caller is rejected: %s',
    async (_, first, then) => {
      await bind(await release(write({ auth: 'optional' })))
      const operationId = system.ids.make('opn')
      const as = async (sub?: string) =>
        send({ operationId, token: sub === undefined ? undefined : await tokenOf(sub) })
      expect((await as(first)).outcome).toBe('200')
      expect((await as(then)).outcome).toBe('OPERATION_REUSED')
      expect(await as(first)).toMatchObject({ outcome: '200', replayed: true })
      expect(runs).toBe(1)
    },
  )
})

describe('an operation that an earlier server recorded under its credential', () => {
  const MODES: readonly (readonly [FunctionManifest['auth'], string | null, string, string])[] = [
    ['none', null, '200', '200'],
    ['optional', null, '200', 'OPERATION_REUSED'],
    ['optional', 'user-1', 'OPERATION_REUSED', '200'],
    ['user', 'user-1', 'FUNCTIONAL_TOKEN_REQUIRED', '200'],
  ]
  test.each(MODES)(
    'an operation recorded by an earlier server is found in mode %s for user %s',
    async (auth, sub, bare, signed) => {
      await bind(await release(write({ auth })))
      const { product } = gateway.harness
      const { clientId, credentialId } = product.keys.authenticate(gateway.key)!
      const loaded = await product.releases.load(bound)
      const operationId = system.ids.make('opn')
      const { iss } = issuer.claims(0) as { readonly iss: string }
      const identity = { kind: 'user', issuer: iss, subject: sub!, roles: [] } as const
      await gateway.engine.mutation({
        release: loaded,
        definition: loaded.functions.get('notes.write')!,
        arguments: new Map([['text', 'a note']]),
        principal: null,
        operationId,
        target: 'channel:production',
        context: { requestId: REQUEST_ID, invocationId: system.ids.make('ivc') },
        caller: `${clientId}/${credentialId}${sub === null ? '' : `/${principalOf(identity)}`}`,
      })
      expect((await send({ operationId })).outcome).toBe(bare)
      expect((await send({ operationId, token: await tokenOf('user-1') })).outcome).toBe(signed)
      const other = await send({ operationId, key: siblingKey(), token: await tokenOf('user-1') })
      expect(other.outcome).toBe('OPERATION_REUSED')
      expect(runs).toBe(1)
    },
  )
})
