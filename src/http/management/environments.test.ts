import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answer, BASE, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import { publishRelease, type TestProduct } from '../../../testing/products.ts'
import { Promoted } from '../../wire/channels.ts'
import { EnvironmentChanged, EnvironmentState } from '../../wire/environment.ts'
import { OperationField } from '../../wire/idempotency-records.ts'
import { Status } from '../../wire/status.ts'

const CONFIGURATION = {
  name: 'Shop',
  slug: 'shop',
  region: 'eu-west',
  purpose: 'production',
  protection: 'none',
  location: null,
  workspaceTargets: 'denied',
} as const

type Verb = 'create' | 'update' | 'archive' | 'restore'

interface Sent {
  readonly operationId?: string | null
  readonly expectedRevision?: number | string
  readonly changedAtMicros?: string
  readonly configuration?: object
  /** Fields that replace those of the body. */
  readonly body?: object
  readonly base?: string
}

let routes: ProductRoutes
let fixture: TestProduct
beforeEach(async () => {
  routes = await ProductRoutes.open()
  fixture = routes.harness
})
afterEach(() => fixture.close())

const micros = () => String(fixture.system.nowMicros())
const newOperation = () => fixture.system.ids.make('opn')
const METHODS = {
  create: ['POST', ''],
  update: ['PUT', ''],
  archive: ['POST', '/archive'],
  restore: ['POST', '/restore'],
} as const

function send(verb: Verb, { base, body, ...sent }: Sent = {}) {
  const [method, path] = METHODS[verb]
  const { operationId = newOperation(), changedAtMicros = micros() } = sent
  const { expectedRevision = 0, configuration = CONFIGURATION } = sent
  return routes.call(method, path, {
    headers: operationId === null ? {} : { 'idempotency-key': operationId },
    body: {
      changedAtMicros,
      ...(verb === 'create' ? {} : { expectedRevision }),
      ...(verb === 'create' || verb === 'update' ? { configuration } : {}),
      ...body,
    },
    ...(base === undefined ? {} : { base }),
  })
}

const change = (verb: Verb, sent: Sent = {}) =>
  answer(send(verb, sent), verb === 'create' ? 201 : 200, EnvironmentChanged)
const read = () => answer(routes.call('GET', ''), 200, EnvironmentState)

/** Brings a new root to each state. */
const STATES = {
  'as svc init made it': async () => undefined,
  configured: async () => {
    await change('create')
  },
  archived: async () => {
    await change('create')
    await change('archive', { expectedRevision: 1 })
  },
} as const
const REVISIONS = { 'as svc init made it': 0, configured: 1, archived: 2 } as const

describe('the Environment', () => {
  const rows: readonly (readonly [keyof typeof STATES, Verb, 'exact' | 'stale', string])[] = [
    ['as svc init made it', 'create', 'exact', 'active 1'],
    ['as svc init made it', 'update', 'exact', 'active 1'],
    ['as svc init made it', 'update', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['as svc init made it', 'archive', 'exact', 'archived 1'],
    ['as svc init made it', 'archive', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['as svc init made it', 'restore', 'exact', 'PRODUCT_STATE_CONFLICT'],
    ['as svc init made it', 'restore', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['configured', 'create', 'exact', 'PRODUCT_STATE_CONFLICT'],
    ['configured', 'update', 'exact', 'active 2'],
    ['configured', 'update', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['configured', 'archive', 'exact', 'archived 2'],
    ['configured', 'archive', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['configured', 'restore', 'exact', 'PRODUCT_STATE_CONFLICT'],
    ['configured', 'restore', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['archived', 'create', 'exact', 'PRODUCT_STATE_CONFLICT'],
    ['archived', 'update', 'exact', 'archived 3'],
    ['archived', 'update', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['archived', 'archive', 'exact', 'PRODUCT_STATE_CONFLICT'],
    ['archived', 'archive', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['archived', 'restore', 'exact', 'active 3'],
    ['archived', 'restore', 'stale', 'PRODUCT_CAS_CONFLICT'],
  ]
  test.each(rows)('%s | %s | %s revision -> %s', async (state, verb, condition, expected) => {
    await STATES[state]()
    const before = await read()
    const expectedRevision = REVISIONS[state] + (condition === 'exact' ? 0 : 1)
    const configuration = { ...CONFIGURATION, name: 'Renamed' }
    if (expected.startsWith('PRODUCT_')) {
      await rejection(send(verb, { expectedRevision, configuration }), 409, expected)
      expect(await read()).toEqual(before)
      return
    }
    const changed = await change(verb, { expectedRevision, configuration })
    const { desired } = changed
    expect(`${desired.lifecycle} ${desired.revision}`).toBe(expected)
    expect(changed.operation).toMatchObject({
      kind: `environment.${verb}`,
      revision: desired.revision,
      replayed: false,
    })
    const renamed = verb === 'create' || verb === 'update'
    expect(desired.configuration.name).toBe(renamed ? 'Renamed' : before.desired.configuration.name)
    const { lifecycle, revision } = desired
    expect((await read()).observed).toMatchObject({ lifecycle, revision })
  })
})

describe('an operation', () => {
  const verbs: readonly (readonly [Verb, keyof typeof STATES])[] = [
    ['create', 'as svc init made it'],
    ['update', 'configured'],
    ['archive', 'configured'],
    ['restore', 'archived'],
  ]

  test.each(verbs)('%s that is repeated has its original response', async (verb, state) => {
    await STATES[state]()
    const sent = {
      operationId: newOperation(),
      changedAtMicros: micros(),
      expectedRevision: REVISIONS[state],
    }
    const first = await change(verb, sent)
    // Later changes are not part of the response.
    await change('update', { expectedRevision: first.desired.revision })
    const replayed = { ...first, operation: { ...first.operation, replayed: true } }
    expect(await answer(send(verb, sent), 200, EnvironmentChanged)).toEqual(replayed)
    const asText = { ...sent, expectedRevision: String(sent.expectedRevision) }
    expect(await answer(send(verb, asText), 200, EnvironmentChanged)).toEqual(replayed)
    const path = `/environment-operations/${sent.operationId}`
    const found = await answer(routes.call('GET', path), 200, OperationField)
    expect(found).toEqual(replayed.operation)
  })

  const reuses: readonly (readonly [string, Verb, Sent])[] = [
    ['another body', 'update', { configuration: { ...CONFIGURATION, name: 'Other' } }],
    ['another revision', 'update', { expectedRevision: 1 }],
    ['another timestamp', 'update', { changedAtMicros: '1800000000000001' }],
    ['another method', 'create', {}],
    ['another path', 'archive', {}],
  ]
  test.each(reuses)('ID that is used for %s is a conflict', async (_, verb, other) => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    await change('update', sent)
    const before = await read()
    await rejection(send(verb, { ...sent, ...other }), 409, 'PRODUCT_OPERATION_REUSED')
    expect(await read()).toEqual(before)
  })

  test('ID that another operator uses is a conflict', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    await change('update', sent)
    const { actor } = fixture
    Object.assign(actor, { operatorId: fixture.system.ids.make('opr') })
    await rejection(send('update', sent), 409, 'PRODUCT_OPERATION_REUSED')
  })

  test('ID does not carry over to another Environment', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    await change('update', sent)
    const base = BASE.replace(/env_\w+/, fixture.system.ids.make('env'))
    await rejection(send('update', { ...sent, base }), 403, 'PLATFORM_ACCESS_DENIED')
  })

  test('an operation that is unknown, or of another resource, is not found', async () => {
    const path = (id: string) => `/environment-operations/${id}`
    await rejection(routes.call('GET', path(newOperation())), 404, 'PRODUCT_NOT_FOUND')
    await rejection(routes.call('GET', path('opn_1')), 400, 'PLATFORM_REQUEST_INVALID')
    const operationId = newOperation()
    await change('update', { operationId })
    const other = `/serving-policy-operations/${operationId}`
    await rejection(routes.call('GET', other), 404, 'PRODUCT_NOT_FOUND')
  })

  test('an operation that failed is not recorded, so that its ID may be used again', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    await rejection(send('update', { ...sent, expectedRevision: 7 }), 409, 'PRODUCT_CAS_CONFLICT')
    await change('update', sent)
  })
})

describe('rejected changes', () => {
  const { slug: _, ...incomplete } = CONFIGURATION
  const wrong = (field: object) => ({ configuration: { ...CONFIGURATION, ...field } })
  const rows: readonly (readonly [string, Verb, Sent, string])[] = [
    ['no Operation ID', 'update', { operationId: null }, 'PLATFORM_REQUEST_INVALID'],
    ['half a configuration', 'update', { configuration: incomplete }, 'PLATFORM_REQUEST_INVALID'],
    ['a provider', 'create', wrong({ provider: 'x' }), 'PLATFORM_REQUEST_INVALID'],
    ['an upper-case slug', 'create', wrong({ slug: 'Shop' }), 'PLATFORM_REQUEST_INVALID'],
    ['an unknown purpose', 'create', wrong({ purpose: 'play' }), 'PLATFORM_REQUEST_INVALID'],
    ['an empty name', 'create', wrong({ name: '' }), 'PLATFORM_REQUEST_INVALID'],
    ['a revision', 'create', { body: { expectedRevision: 0 } }, 'PLATFORM_REQUEST_INVALID'],
    ['a configuration', 'archive', { body: wrong({}) }, 'PLATFORM_REQUEST_INVALID'],
    ['a clock two days off', 'update', { changedAtMicros: '1799827200000000' }, 'PRODUCT_INVALID'],
  ]
  test.each(rows)('a change is rejected for %s (%s)', async (_name, verb, sent, code) => {
    await rejection(send(verb, sent), 400, code)
    expect((await read()).desired.revision).toBe('0')
  })
})

test('every change is audited once with its kind', async () => {
  await change('create')
  const archive = { expectedRevision: 1, operationId: newOperation(), changedAtMicros: micros() }
  await change('archive', archive)
  await change('archive', archive)
  await change('restore', { expectedRevision: 2 })
  await change('update', { expectedRevision: 3 })
  await fixture.product.audit.whenIdle()
  const { environmentId: subject } = fixture.root.descriptor
  const verbs = ['create', 'archive', 'restore', 'update']
  expect(fixture.audited).toMatchObject(
    verbs.map((verb) => ({ operation: `product.environment.${verb}`, subject })),
  )
})

describe('an archived Environment', () => {
  async function promoteTo(source: string) {
    const { releaseId } = await publishRelease(fixture, { source })
    const promoted = routes.call('PUT', '/channels/production', { body: { releaseId } })
    return answer(promoted, 200, Promoted)
  }

  test('an Environment is observed as archived when its last call has ended', async () => {
    await promoteTo('a')
    const ended = Promise.withResolvers<void>()
    fixture.engine.whenIdle = () => ended.promise
    const { observed } = await change('archive')
    expect(observed).toMatchObject({ revision: '0', lifecycle: 'active' })
    // New calls are rejected after the commit.
    expect(fixture.product.serving.isStarted).toBe(false)
    const serving = 'stopped'
    expect((await read()).observed).toEqual({ revision: '0', lifecycle: 'active', serving })
    ended.resolve()
    await ended.promise
    expect((await read()).observed).toEqual({ revision: '1', lifecycle: 'archived', serving })
  })

  test('an Environment restored before its last call ends is observed as active', async () => {
    await promoteTo('a')
    const ended = Promise.withResolvers<void>()
    fixture.engine.whenIdle = () => ended.promise
    await change('archive')
    await change('restore', { expectedRevision: 1 })
    await fixture.product.serving.whenIdle()
    const expected = { revision: '2', lifecycle: 'active', serving: 'serving' }
    expect((await read()).observed).toEqual(expected)
    ended.resolve()
    await ended.promise
    expect((await read()).observed).toEqual(expected)
  })

  test('accepts promotions and serves them once it is restored', async () => {
    await promoteTo('a')
    await change('archive')
    const { releaseId, serving } = await promoteTo('b')
    expect(serving).toBe('pending')
    await fixture.product.serving.whenIdle()
    expect(fixture.product.serving.find('production')).toBe(null)
    await change('restore', { expectedRevision: 1 })
    await fixture.product.serving.whenIdle()
    expect(fixture.product.serving.find('production')).toMatchObject({ releaseId })
  })

  test('an Environment that has no Channel stays stopped when it is restored', async () => {
    await change('archive')
    await change('restore', { expectedRevision: 1 })
    const expected = { revision: '2', lifecycle: 'active', serving: 'stopped' }
    expect((await read()).observed).toEqual(expected)
  })

  test('an archived Environment is shown in the status, whose revision increased', async () => {
    const status = () => answer(routes.call('GET', '/status'), 200, Status)
    const before = await status()
    await change('archive')
    const after = await status()
    expect([before.lifecycle, after.lifecycle]).toEqual(['active', 'archived'])
    expect(BigInt(after.revision)).toBe(BigInt(before.revision) + 1n)
  })
})

describe('a protected Environment', () => {
  const promote = (body: object) => routes.call('PUT', '/channels/production', { body })

  test('rejects a promotion without the Release that it replaces', async () => {
    const a = (await publishRelease(fixture, { source: 'a' })).releaseId
    const b = (await publishRelease(fixture, { source: 'b' })).releaseId
    await change('create', { configuration: { ...CONFIGURATION, protection: 'protected' } })
    const error = await rejection(promote({ releaseId: a }), 400, 'PRODUCT_INVALID')
    expect(error.violations).toMatchObject([{ path: 'expectedReleaseId' }])
    await answer(promote({ releaseId: a, expectedReleaseId: 'empty' }), 200, Promoted)
    // Even a promotion that would change nothing.
    await rejection(promote({ releaseId: a }), 400, 'PRODUCT_INVALID')
    const stale = promote({ releaseId: b, expectedReleaseId: 'empty' })
    await rejection(stale, 409, 'PRODUCT_CAS_CONFLICT')
    await answer(promote({ releaseId: b, expectedReleaseId: a }), 200, Promoted)
  })
})
