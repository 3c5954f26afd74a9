import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import { publishRelease, type TestProduct } from '../../../testing/products.ts'
import { Fault } from '../../errors/fault.ts'
import { retire } from '../../product/releases/retire.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { FunctionCatalog } from '../../wire/catalogs.ts'
import { OperationField } from '../../wire/idempotency-records.ts'
import {
  SchemaCompatibility,
  ServingPolicy,
  ServingPolicyChanged,
} from '../../wire/serving-policy.ts'
import { Status } from '../../wire/status.ts'

const NOTES: TableManifest = { name: 'notes', fields: { n: { type: 'int64' } }, indexes: [] }
const WIDER: TableManifest = { ...NOTES, fields: { n: { type: 'any' } } }
const UNIQUE: TableManifest = {
  ...NOTES,
  indexes: [{ name: 'byN', fields: ['n'], unique: true }],
}
const OTHER: TableManifest = { ...NOTES, name: 'others' }

interface Sent {
  readonly operationId?: string | null
  readonly expectedRevision?: number | string
  readonly mode?: string
  readonly changedAtMicros?: string
  readonly body?: object
}

type Weights = readonly { readonly releaseId: string; readonly weight: number }[]

let routes: ProductRoutes
let fixture: TestProduct
let a: ReleaseId
let b: ReleaseId
beforeEach(async () => {
  routes = await ProductRoutes.open()
  fixture = routes.harness
  a = await release('a', [NOTES])
  b = await release('b', [NOTES])
})
afterEach(async () => {
  await startRunners()
  await fixture.close()
})

const micros = () => String(fixture.system.nowMicros())
const newOperation = () => fixture.system.ids.make('opn')
const all = (releaseId: string): Weights => [{ releaseId, weight: 10_000 }]
const shares = (ids: readonly string[], weights: readonly number[]): Weights =>
  ids.map((releaseId, i) => ({ releaseId, weight: weights[i]! }))

async function release(source: string, tables: readonly TableManifest[]): Promise<ReleaseId> {
  return (await publishRelease(fixture, { source, tables })).releaseId
}

function put(releases: Weights, { operationId = newOperation(), body, ...sent }: Sent = {}) {
  return routes.call('PUT', '/serving-policy', {
    headers: operationId === null ? {} : { 'idempotency-key': operationId },
    body: {
      expectedRevision: sent.expectedRevision ?? 0,
      mode: sent.mode ?? (releases.length === 1 ? 'atomic' : 'weighted'),
      releases,
      changedAtMicros: sent.changedAtMicros ?? micros(),
      ...body,
    },
  })
}

const set = (releases: Weights, sent: Sent = {}) =>
  answer(put(releases, sent), 200, ServingPolicyChanged)
const read = () => answer(routes.call('GET', '/serving-policy'), 200, ServingPolicy)
const short = ({ desired, observed }: ServingPolicy) => `${desired.revision} ${observed.revision}`

/** Set while starts of runners wait for startRunners. */
let starting: PromiseWithResolvers<void> | null = null
function holdRunners(): void {
  starting ??= Promise.withResolvers<void>()
  const { promise } = starting
  fixture.engine.warm = () => promise
}

async function startRunners(): Promise<void> {
  starting?.resolve()
  starting = null
  await fixture.product.serving.whenIdle()
}

describe('the serving policy', () => {
  /** Brings a new root to each state, with its revision. */
  const states = {
    none: async () => 0,
    converging: async () => {
      holdRunners()
      await set(all(a))
      return 1
    },
    converged: async () => {
      await set(all(a))
      await fixture.product.serving.whenIdle()
      return 1
    },
    'converging from another': async () => {
      await set(all(a))
      await fixture.product.serving.whenIdle()
      holdRunners()
      await set(all(b), { expectedRevision: 1 })
      return 2
    },
  }
  /** The request; then desired and observed revisions before, right after and at the end. */
  const rows: readonly (readonly [keyof typeof states, 'exact' | 'stale', string])[] = [
    ['none', 'exact', '0 0 | 1 0 | 1 1'],
    ['none', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['converging', 'exact', '1 0 | 2 0 | 2 2'],
    ['converging', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['converged', 'exact', '1 1 | 2 1 | 2 2'],
    ['converged', 'stale', 'PRODUCT_CAS_CONFLICT'],
    ['converging from another', 'exact', '2 1 | 3 1 | 3 3'],
    ['converging from another', 'stale', 'PRODUCT_CAS_CONFLICT'],
  ]
  test.each(rows)(
    '%s | PUT | %s revision -> %s',
    { tags: ['slow'] },
    async (state, condition, expected) => {
      const revision = await states[state]()
      const before = await read()
      const expectedRevision = revision + (condition === 'exact' ? 0 : 1)
      const releases = shares([a, b], [2_500, 7_500])
      if (condition === 'stale') {
        await rejection(put(releases, { expectedRevision }), 409, expected)
        expect(await read()).toEqual(before)
        return
      }
      holdRunners()
      const changed = await set(releases, { expectedRevision })
      const during = await read()
      expect(during.desired).toEqual({ revision: String(revision + 1), mode: 'weighted', releases })
      await startRunners()
      const after = await read()
      expect([before, changed, after].map(short).join(' | ')).toBe(expected)
      expect(after.observed.convergedAtMicros).toMatch(/^[0-9]{16}$/)
      const { desiredRevision, observedRevision } = (
        await answer(routes.call('GET', '/status'), 200, Status)
      ).servingPolicy!
      expect(`${desiredRevision} ${observedRevision}`).toBe(short(after))
    },
  )

  test('the policy is revision zero, and null in the status, before the first change', async () => {
    expect(await read()).toEqual({
      version: 1,
      desired: { revision: '0', mode: 'atomic', releases: [] },
      observed: { revision: '0', convergedAtMicros: null },
    })
    expect(await answer(routes.call('GET', '/status'), 200, Status)).toMatchObject({
      servingPolicy: null,
    })
  })

  test('a policy whose runners cannot start is not served until they can', async () => {
    await set(all(a))
    await fixture.product.serving.whenIdle()
    fixture.engine.warm = () => Promise.reject(new RangeError('no runner'))
    await set(all(b), { expectedRevision: 1 })
    await fixture.product.serving.whenIdle()
    expect(short(await read())).toBe('2 1')
    expect(fixture.product.serving.observedPolicy?.releases).toMatchObject([
      { release: { source: 'a' } },
    ])
    fixture.engine.warm = async () => undefined
    fixture.system.advance(1_000)
    // Reading the policy is enough, without a call of a Function.
    await read()
    await fixture.product.serving.whenIdle()
    expect(short(await read())).toBe('2 2')
  })

  test('a change of the policy is audited once', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    await set(all(a), sent)
    await set(all(a), sent)
    await fixture.product.audit.whenIdle()
    const records = fixture.audited.filter(({ operation }) => operation.includes('policy'))
    const subject = `${fixture.root.descriptor.environmentId}:1`
    expect(records).toMatchObject([{ operation: 'product.serving_policy.set', subject }])
  })
})

describe('rejected changes', () => {
  const unknown = 'rel_00000000000000000000000000'
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => `rel_${String(i).padStart(26, '0')}`)
  const rows: readonly (readonly [string, () => Weights, Sent, string])[] = [
    ['no Release', () => [], {}, '400 PRODUCT_INVALID'],
    [
      'two Releases in the mode atomic',
      () => shares([a, b], [1, 9_999]),
      { mode: 'atomic' },
      '400 PRODUCT_INVALID',
    ],
    ['weights below the whole', () => shares([a, b], [1, 9_998]), {}, '400 PRODUCT_INVALID'],
    ['weights above the whole', () => shares([a, b], [2, 9_999]), {}, '400 PRODUCT_INVALID'],
    ['a weight of nothing', () => shares([a, b], [0, 10_000]), {}, '400 PLATFORM_REQUEST_INVALID'],
    ['a broken weight', () => shares([a, b], [0.5, 9_999.5]), {}, '400 PLATFORM_REQUEST_INVALID'],
    ['Releases in another order', () => shares([b, a], [1, 9_999]), {}, '400 PRODUCT_INVALID'],
    ['a Release twice', () => shares([a, a], [1, 9_999]), {}, '400 PRODUCT_INVALID'],
    ['too many Releases', () => shares(many(17), Array(17).fill(588)), {}, '400 PRODUCT_INVALID'],
    ['an unknown mode', () => all(a), { mode: 'canary' }, '400 PLATFORM_REQUEST_INVALID'],
    ['an unknown field', () => all(a), { body: { sticky: true } }, '400 PLATFORM_REQUEST_INVALID'],
    ['no Operation ID', () => all(a), { operationId: null }, '400 PLATFORM_REQUEST_INVALID'],
    [
      'no revision',
      () => all(a),
      { body: { expectedRevision: undefined } },
      '400 PLATFORM_REQUEST_INVALID',
    ],
    ['an unknown Release', () => all(unknown), {}, '404 PRODUCT_NOT_FOUND'],
  ]
  test.each(rows)(
    'a change is rejected for %s, and not stored',
    { tags: ['slow'] },
    async (_, releases, sent, expected) => {
      const [status, code] = expected.split(' ')
      await rejection(put(releases(), sent), Number(status), code!)
      expect(short(await read())).toBe('0 0')
    },
  )

  test.each([
    ['published', 409, 'PRODUCT_STATE_CONFLICT'],
    ['rejected', 409, 'PRODUCT_STATE_CONFLICT'],
    ['retired', 410, 'PRODUCT_RELEASE_RETIRED'],
  ])('a Release that is %s cannot be served', async (state, status, code) => {
    fixture.root.control.transaction((tx) =>
      state === 'published'
        ? tx.run(
            `update releases set state = 'published', checks = null, validated_at = null
              where release_id = ?`,
            a,
          )
        : tx.run('update releases set state = ? where release_id = ?', state, a),
    )
    await rejection(put(all(a)), status, code)
  })

  const incompatible: readonly (readonly [string, TableManifest, string])[] = [
    [
      'takes fewer documents',
      WIDER,
      'CHANGED writes what FIRST rejects: notes.n: int64 becomes any; for example {"n":null}; ' +
        'change the stored documents with a migration first',
    ],
    [
      'does not keep a unique index',
      UNIQUE,
      'FIRST writes what CHANGED rejects: notes.byN: the unique index is added; for example ' +
        '{"n":0}; Releases that differ by this cannot serve side by side',
    ],
  ]
  test.each(incompatible)('Releases cannot serve together if one %s', async (_, table, reason) => {
    const c = await release('c', [table])
    const releases = shares([a, c], [9_000, 1_000])
    const error = await rejection(put(releases), 400, 'PRODUCT_INCOMPATIBLE')
    const rule = reason.replace('FIRST', a).replace('CHANGED', c)
    expect(error.violations).toEqual([{ path: 'releases', rule }])
    expect(short(await read())).toBe('0 0')
    // It may serve alone.
    await set(all(c))
  })

  test('a Release with an additional table can be served beside another one', async () => {
    const c = await release('c', [NOTES, OTHER])
    await set(shares([a, c], [9_000, 1_000]))
  })
})

describe('an operation', () => {
  test('a repeated operation has its original response, regardless of later changes', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    const first = await set(shares([a, b], [1, 9_999]), sent)
    await fixture.product.serving.whenIdle()
    await set(all(b), { expectedRevision: 1 })
    await fixture.product.serving.whenIdle()
    retire(fixture.product, fixture.actor, {
      releaseId: a,
      requestId: fixture.system.ids.make('req'),
    })
    const replayed = { ...first, operation: { ...first.operation, replayed: true } }
    expect(await set(shares([a, b], [1, 9_999]), sent)).toEqual(replayed)
    const path = `/serving-policy-operations/${sent.operationId}`
    const found = await answer(routes.call('GET', path), 200, OperationField)
    expect(found).toEqual(replayed.operation)
    expect((await read()).desired.revision).toBe('2')
  })

  const reuses: readonly (readonly [string, Sent, () => Weights])[] = [
    ['other weights', {}, () => shares([a, b], [2, 9_998])],
    ['another mode', { mode: 'weighted' }, () => all(a)],
    ['another revision', { expectedRevision: 1 }, () => all(a)],
    ['another timestamp', { changedAtMicros: '1800000000000001' }, () => all(a)],
  ]
  test.each(reuses)(
    'ID that is used for %s is a conflict',
    { tags: ['slow'] },
    async (_, other, releases) => {
      const sent = { operationId: newOperation(), changedAtMicros: micros() }
      await set(all(a), sent)
      await rejection(put(releases(), { ...sent, ...other }), 409, 'PRODUCT_OPERATION_REUSED')
      expect((await read()).desired.revision).toBe('1')
    },
  )

  test('an operation that two requests send concurrently is applied once', async () => {
    const sent = { operationId: newOperation(), changedAtMicros: micros() }
    const answers = await Promise.all([set(all(a), sent), set(all(a), sent)])
    expect(answers.map(({ operation }) => operation.replayed).toSorted()).toEqual([false, true])
  })

  test('an operation that is unknown, or of another resource, is not found', async () => {
    const path = (id: string) => `/serving-policy-operations/${id}`
    await rejection(routes.call('GET', path(newOperation())), 404, 'PRODUCT_NOT_FOUND')
    const operationId = newOperation()
    await set(all(a), { operationId })
    const other = `/environment-operations/${operationId}`
    await rejection(routes.call('GET', other), 404, 'PRODUCT_NOT_FOUND')
  })
})

describe('a Release', () => {
  const retired = (releaseId: ReleaseId): string => {
    try {
      retire(fixture.product, fixture.actor, {
        releaseId,
        requestId: fixture.system.ids.make('req'),
      })
      return 'retired'
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  test('a Release of the desired or the served policy cannot be retired', async () => {
    await set(all(a))
    await fixture.product.serving.whenIdle()
    holdRunners()
    await set(all(b), { expectedRevision: 1 })
    expect([a, b].map(retired)).toEqual(['PRODUCT_STATE_CONFLICT', 'PRODUCT_STATE_CONFLICT'])
    await startRunners()
    expect([a, b].map(retired)).toEqual(['retired', 'PRODUCT_STATE_CONFLICT'])
  })

  test('the Release of greatest weight provides the catalog of environment:default', async () => {
    const catalog = () => routes.call('GET', '/functions?target=environment:default')
    await rejection(catalog(), 404, 'PRODUCT_NOT_FOUND')
    await set(shares([a, b], [4_999, 5_001]))
    await fixture.product.serving.whenIdle()
    expect(await answer(catalog(), 200, FunctionCatalog)).toMatchObject({ releaseId: b })
  })
})

describe('the schemas', () => {
  const evidence = () =>
    answer(routes.call('GET', '/schemas/compatibility'), 200, SchemaCompatibility)

  test('schemas are compatible without a policy', async () => {
    expect(await evidence()).toEqual({ version: 1, compatible: true, releases: [] })
  })

  test('schemas are compared once for each policy', async () => {
    await set(shares([a, b], [5_000, 5_000]))
    const load = vi.spyOn(fixture.product.releases, 'load')
    load.mockRejectedValueOnce(new Fault('PRODUCT_UNAVAILABLE'))
    await rejection(routes.call('GET', '/schemas/compatibility'), 503, 'PRODUCT_UNAVAILABLE')
    const first = await evidence()
    const loads = load.mock.calls.length
    expect(await Promise.all([evidence(), evidence()])).toEqual([first, first])
    expect(load).toHaveBeenCalledTimes(loads)
    await set(all(a), { expectedRevision: 1 })
    expect((await evidence()).releases.map(({ releaseId }) => releaseId)).toEqual([a])
  })

  test('schemas have equal hashes exactly if they are equal, part by part', async () => {
    const c = await release('c', [NOTES, OTHER])
    const byN = { name: 'byN', fields: ['n'], unique: false }
    const d = await release('d', [{ ...NOTES, indexes: [byN] }])
    await set(shares([a, b, c, d], [2_500, 2_500, 2_500, 2_500]))
    const { compatible, releases } = await evidence()
    expect(compatible).toBe(true)
    expect(releases.map(({ releaseId }) => releaseId)).toEqual([a, b, c, d])
    const hashes = (i: number) => Object.values(releases[i]!).slice(1)
    const differing = (i: number) => hashes(i).map((hash, part) => hash !== hashes(0)[part])
    expect([1, 2, 3].map(differing)).toEqual([
      [false, false, false],
      [true, true, false],
      [false, true, false],
    ])
  })
})
