import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Random } from '../../../testing/fuzzing/fuzz.ts'
import {
  AUTHORIZED,
  DYING_COLLECTOR,
  functionManifest,
  makePackage,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import { bindChannel, faultCode, releaseState, retireRelease } from '../../../testing/releases.ts'
import type { Fault } from '../../errors/fault.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { rollback } from '../channels/rollback.ts'
import { readStatus } from '../environments/status.ts'
import { changeMount, removeMount } from '../http-mounts/mounts.ts'
import { resolveTarget } from '../serving/target-resolution.ts'
import { type ExpectedHead, publish } from '../workspaces/publish.ts'
import { listFunctions } from './catalogs.ts'
import { RELEASES_KEPT, retire } from './retire.ts'
import { validate } from './validate.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

const bind = (releaseId: ReleaseId, channel = 'production') =>
  bindChannel(harness, releaseId, { channel })

/** Returns the violations of a failed retirement; null if it succeeds. */
function violationsOf(releaseId: ReleaseId): unknown {
  try {
    retireRelease(harness, releaseId)
  } catch (error) {
    return (error as Fault).violations.map(({ path, rule }) => `${path}: ${rule}`)
  }
  return null
}

const stateOf = (releaseId: ReleaseId) => releaseState(harness, releaseId)

/** Returns the digests of the stored artifacts, sorted. */
function filesOf(opened = harness): string[] {
  const root = join(opened.directory, 'artifacts', 'sha256')
  return readdirSync(root)
    .flatMap((head) => readdirSync(join(root, head)).map((tail) => `sha256:${head}${tail}`))
    .toSorted()
}

/** Returns the digests that Releases reference that are not retired, sorted. */
function referencedOf(opened = harness): string[] {
  const kept = readStatus(opened.product).releases.filter(({ state }) => state !== 'retired')
  const digests = kept.flatMap(({ manifest, artifact }) => [manifest.digest, artifact.digest])
  return [...new Set(digests)].toSorted()
}

/** Every third step in the short run. */
const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 3

describe('a retirement', () => {
  test('the target of a mount is not retired while the mount names it', async () => {
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    const { product, actor, system } = harness
    const change = () => ({
      operationId: system.ids.make('opn'),
      name: 'payments',
      expectedRevision: null,
      changedAtMicros: system.nowMicros(),
      requestId: REQUEST_ID,
    })
    changeMount(product, actor, { ...change(), configuration: { target: `release:${releaseId}` } })
    expect(violationsOf(releaseId)).toEqual(['releaseId: not the target of the mount payments'])
    expect(stateOf(releaseId)).not.toBe('retired')
    removeMount(product, actor, change())
    expect(violationsOf(releaseId)).toBeNull()
  })

  test('a retirement removes the Release and its bytes and is audited once', async () => {
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    const kept = await publishRelease(harness, { source: 'b' })
    const before = readStatus(harness.product).revision
    retireRelease(harness, releaseId)
    expect(stateOf(releaseId)).toBe('retired')
    retireRelease(harness, releaseId)
    expect(readStatus(harness.product).revision).toBe(before + 1n)
    await harness.product.collection.whenIdle()
    expect(filesOf()).toEqual(referencedOf())
    expect(referencedOf()).toHaveLength(2)
    await harness.product.releases.load(kept.releaseId)
    await harness.product.audit.whenIdle()
    const audited = harness.audited.filter(
      ({ operation }) => operation === 'product.release.retire',
    )
    expect(audited.map(({ subject }) => subject)).toEqual([releaseId])
  })

  test.each([
    [3, 'releaseId: not the Release of 3 unfinished pieces of scheduled work'],
    [null, /^releaseId: not checked before scheduled work is counted/],
  ])(
    'a retirement is rejected while scheduled work is pinned to the Release: %s',
    async (pending, rule) => {
      const { releaseId } = await publishRelease(harness, { source: 'a' })
      harness.engine.pendingWork = pending
      expect(violationsOf(releaseId)).toEqual([expect.stringMatching(rule)])
      harness.engine.pendingWork = 0
      expect(violationsOf(releaseId)).toBeNull()
    },
  )

  test('a retirement passes the indexes of the remaining Releases to the engine', async () => {
    const table = (name: string, ...fields: readonly string[]) => ({
      name,
      fields: { a: { type: 'string' } as const, b: { type: 'string' } as const },
      indexes: fields.map((field) => ({ name: `by_${field}`, fields: [field], unique: false })),
    })
    const { releaseId } = await publishRelease(harness, { tables: [table('notes', 'a')] })
    const kept = await publishRelease(harness, { tables: [table('notes', 'b')] })
    let live: unknown
    harness.engine.retainOnly = async (releases) => {
      live = [...releases]
      return 1
    }
    retireRelease(harness, releaseId)
    await harness.product.engineCollection.whenIdle()
    const indexes = [[], ['b']].map((fields) => ({ table: 'notes', fields }))
    expect(live).toEqual([[kept.releaseId, indexes]])
    expect(
      harness.log.records().filter(({ event }) => event === 'product.indexes_dropped'),
    ).toEqual([expect.objectContaining({ dropped: 1 })])
  })

  test('a retirement of an unknown Release is rejected', async () => {
    expect(await faultCode(() => retireRelease(harness, harness.system.ids.make('rel')))).toBe(
      'PRODUCT_NOT_FOUND',
    )
  })

  test('a Release that a Channel is bound to is not retired, an earlier one is', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    await bind(a)
    await bind(a, 'beta')
    expect(await faultCode(() => retireRelease(harness, a))).toBe('PRODUCT_STATE_CONFLICT')
    expect(violationsOf(a)).toEqual([
      'releaseId: not bound to the Channel beta',
      'releaseId: not bound to the Channel production',
    ])
    await bind(b)
    await bind(b, 'beta')
    retireRelease(harness, a)
    expect(stateOf(a)).toBe('retired')
  })

  test('a Release that is served until its replacement is ready is not retired', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    await bind(a)
    const warm = Promise.withResolvers<void>()
    harness.engine.isWarm = ({ releaseId }) => releaseId !== b
    harness.engine.warm = () => warm.promise
    await bind(b)
    expect(violationsOf(a)).toEqual(['releaseId: not served until its replacement is ready'])
    warm.resolve()
    await harness.product.serving.whenIdle()
    retireRelease(harness, a)
    expect(stateOf(a)).toBe('retired')
  })

  test('a retirement keeps bytes that another Release references too', async () => {
    const functions = [functionManifest('a.b')]
    const first = await publishRelease(harness, { source: 'same' })
    const second = await publishRelease(harness, { source: 'same', functions })
    retireRelease(harness, first.releaseId)
    await harness.product.collection.whenIdle()
    expect(filesOf()).toEqual(referencedOf())
    await harness.product.releases.load(second.releaseId)
  })

  test('a retirement is not reported as damage to a concurrent reader of the bytes', async () => {
    const { releaseId } = await publishRelease(harness, { source: 'a', validate: false })
    const loading = harness.product.releases.load(releaseId)
    retireRelease(harness, releaseId)
    rmSync(join(harness.directory, 'artifacts', 'sha256'), { recursive: true })
    await expect(loading).rejects.toMatchObject({ code: 'PRODUCT_RELEASE_RETIRED' })
  })
})

describe('a retired Release', () => {
  const gone = { code: 'PRODUCT_RELEASE_RETIRED' }

  test('a retired Release is rejected for every use by an operator', async () => {
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    const next = (await publishRelease(harness, { source: 'b' })).releaseId
    await bind(releaseId)
    await bind(next)
    retireRelease(harness, releaseId)
    const requestId = REQUEST_ID
    expect(await faultCode(() => bind(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
    const validation = validate(harness.product, harness.actor, {
      releaseId,
      against: null,
      requestId,
    })
    await expect(validation).rejects.toMatchObject(gone)
    const back = rollback(harness.product, harness.actor, {
      channel: 'production',
      targetReleaseId: releaseId,
      expectedReleaseId: next,
      requestId,
    })
    await expect(back).rejects.toMatchObject(gone)
    await expect(listFunctions(harness.product, `release:${releaseId}`)).rejects.toMatchObject(gone)
    await expect(harness.product.releases.load(releaseId)).rejects.toMatchObject(gone)
  })

  test('a retired Release is rejected for an application, by ID and as a HEAD', async () => {
    await bind((await publishRelease(harness, { source: 'bound' })).releaseId)
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    const scopes: ApplicationScope[] = ['query', 'workspace']
    const resolve = (target: string) =>
      resolveTarget(harness.product, { scopes }, target, { affinity: () => '' })
    expect(resolve(`release:${releaseId}`)).toMatchObject({ releaseId })
    retireRelease(harness, releaseId)
    expect(await faultCode(() => resolve(`release:${releaseId}`))).toBe('RELEASE_RETIRED')
    expect(await faultCode(() => resolve('workspace:default'))).toBe('RELEASE_RETIRED')
  })
})

describe('a publication', () => {
  test(`a publication retires unused Releases beyond the newest ${RELEASES_KEPT}`, {
    tags: ['slow'],
  }, async () => {
    const head = await publishRelease(harness, { workspace: 'other', source: 'head' })
    const bound = (await publishRelease(harness, { source: 'bound' })).releaseId
    await bind(bound)
    const published: ReleaseId[] = []
    for (let i = 0; i < RELEASES_KEPT + 2; i++) {
      const { releaseId } = await publishRelease(harness, {
        source: String(i),
        validate: i % 2 === 0,
      })
      published.push(releaseId)
    }
    expect(published.slice(0, 3).map(stateOf)).toEqual(['retired', 'retired', 'validated'])
    expect(stateOf(head.releaseId)).toBe('validated')
    expect(stateOf(bound)).toBe('validated')
    await harness.product.collection.whenIdle()
    expect(filesOf()).toEqual(referencedOf())
    await harness.product.audit.whenIdle()
    const audited = harness.audited.filter(
      ({ operation }) => operation === 'product.release.retire',
    )
    expect(audited.map(({ subject }) => subject)).toEqual(published.slice(0, 2))
  })
})

describe('the collection of artifacts', () => {
  test('the collection never removes bytes that a publication is about to reference', {
    tags: ['slow'],
  }, async () => {
    // Goal: unreferenced bytes are kept from the moment a publication relies on them.
    // Method: a few contents are published and retired at random and concurrently.
    const seed = Number(process.env.SVC_SEED ?? Date.now() >>> 0)
    const random = new Random(seed)
    const heads = new Map<string, ExpectedHead>()
    const publishAndRetire = async (workspace: string): Promise<void> => {
      for (let i = 0; i < 25; i++) {
        const published = await publish(harness.product, harness.actor, {
          frame: [makePackage({ workspace, source: String(random.below(2)) })],
          expectedHead: heads.get(workspace) ?? 'empty',
          requestId: REQUEST_ID,
          authorized: AUTHORIZED,
        })
        heads.set(workspace, published.revisionId)
        if (random.chance(2)) await harness.product.releases.load(published.releaseId)
        if (random.chance(2)) retireRelease(harness, published.releaseId)
        else await harness.product.releases.load(published.releaseId)
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(publishAndRetire))
    await harness.product.collection.whenIdle()
    expect(filesOf(), `SVC_SEED=${seed}`).toEqual(referencedOf())
    for (const { releaseId, state } of readStatus(harness.product).releases) {
      if (state === 'retired') continue
      harness.product.releases.forget(releaseId)
      await harness.product.releases.load(releaseId)
    }
  })

  test('the next opening of the root removes bytes that a killed process left', async () => {
    const { directory } = harness
    await publishRelease(harness, { source: 'a' })
    const orphan = `sha256:${'ab'.repeat(32)}`
    await harness.root.artifacts.put(orphan, new Uint8Array(3))
    expect(filesOf()).toContain(orphan)
    harness.product.root.close()
    harness = await openTestProduct({ directory })
    await harness.product.collection.whenIdle()
    expect(filesOf()).toEqual(referencedOf())
    expect(harness.log.text()).toContain('product.artifacts_collected')
  })

  test('a collection that is killed at any step leaves every Release complete', {
    tags: ['slow'],
  }, async () => {
    // Goal: kill -9 at each durable step of a retirement loses no bytes that are referenced.
    // Method: a child retires and kills itself before its nth step; the test then checks the root
    // and repeats the retirement.
    let outcome = { deaths: 0, completed: false }
    for (let deathAt = 0; !outcome.completed; deathAt += STRIDE) {
      const child = Bun.spawnSync([process.execPath, DYING_COLLECTOR, String(deathAt)], { env: {} })
      const [first, last] = child.stdout.toString().trim().split('\n')
      const [directory, retired, ...kept] = (first ?? '').split(' ')
      expect(kept, child.stderr.toString()).toHaveLength(2)
      const completed = child.exitCode === 0
      expect(last).toBe(completed ? 'retired' : undefined)
      outcome = { deaths: outcome.deaths + (completed ? 0 : 1), completed }
      const after = await openTestProduct({ directory: directory! })
      const { releases } = readStatus(after.product)
      for (const { releaseId, state } of releases) {
        if (releaseId !== retired) expect(state).toBe('validated')
        if (state !== 'retired') await after.product.releases.load(releaseId)
      }
      const releaseId = retired as ReleaseId
      retire(after.product, after.actor, { releaseId, requestId: REQUEST_ID })
      await after.product.collection.whenIdle()
      expect(filesOf(after)).toEqual(referencedOf(after))
      expect(referencedOf(after)).toHaveLength(4)
      await after.product.audit.whenIdle()
      const audits = after.audited.filter(({ operation }) => /retire$/.test(operation))
      expect(audits.length).toBeLessThanOrEqual(1)
      await after.close()
    }
    expect(outcome.deaths * STRIDE).toBeGreaterThan(8)
  })
})
