import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Random } from '../../../build/testing/fuzzing/fuzz.ts'
import {
  AUTHORIZED,
  DYING_COLLECTOR,
  functionManifest,
  makePackage,
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../build/testing/products.ts'
import type { Fault } from '../../errors/fault.ts'
import type { ApplicationScope } from '../../storage/control/scopes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { promote, rollback } from '../channels/promote.ts'
import { readStatus } from '../environments/status.ts'
import { resolveTarget } from '../serving/targets.ts'
import { type ExpectedHead, publish } from '../workspaces/publish.ts'
import { listFunctions } from './functions.ts'
import { RELEASES_KEPT, retire } from './retire.ts'
import { validate } from './validate.ts'

let it: TestProduct
beforeEach(async () => {
  it = await openTestProduct()
})
afterEach(() => it.close())

function giveUp(releaseId: ReleaseId): void {
  retire(it.product, it.actor, { releaseId, requestId: REQUEST_ID })
}

async function bind(releaseId: ReleaseId, channel = 'production'): Promise<void> {
  const requestId = REQUEST_ID
  await promote(it.product, it.actor, { channel, releaseId, expectedReleaseId: null, requestId })
}

async function fault(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

/** Why it may not be retired. */
function refusalsOf(releaseId: ReleaseId): unknown {
  try {
    giveUp(releaseId)
  } catch (error) {
    return (error as Fault).violations.map(({ path, rule }) => `${path}: ${rule}`)
  }
  return null
}

function stateOf(releaseId: ReleaseId): string | undefined {
  return readStatus(it.product).releases.find((each) => each.releaseId === releaseId)?.state
}

/** Digests of the files that there are. */
function filesOf(product = it): string[] {
  const root = join(product.directory, 'artifacts', 'sha256')
  return readdirSync(root)
    .flatMap((head) => readdirSync(join(root, head)).map((tail) => `sha256:${head}${tail}`))
    .toSorted()
}

/** Digests that Releases which are not retired name. */
function namedOf(product = it): string[] {
  const kept = readStatus(product.product).releases.filter(({ state }) => state !== 'retired')
  const digests = kept.flatMap(({ manifest, artifact }) => [manifest.digest, artifact.digest])
  return [...new Set(digests)].toSorted()
}

describe('a retirement', () => {
  test('takes the Release and its bytes, once, and is audited', async () => {
    const { releaseId } = await publishRelease(it, { source: 'a' })
    const kept = await publishRelease(it, { source: 'b' })
    const before = readStatus(it.product).revision
    giveUp(releaseId)
    expect(stateOf(releaseId)).toBe('retired')
    giveUp(releaseId)
    expect(readStatus(it.product).revision).toBe(before + 1n)
    await it.product.collection.settled()
    expect(filesOf()).toEqual(namedOf())
    expect(namedOf()).toHaveLength(2)
    await it.product.releases.load(kept.releaseId)
    await it.product.audit.settled()
    const audited = it.audited.filter(({ operation }) => operation === 'product.release.retire')
    expect(audited.map(({ subject }) => subject)).toEqual([releaseId])
  })

  test('leaves the engine what the other Releases declare', async () => {
    const table = (name: string, ...fields: readonly string[]) => ({
      ...{ name, fields: { a: { type: 'string' } as const, b: { type: 'string' } as const } },
      indexes: fields.map((field) => ({ name: `by_${field}`, fields: [field], unique: false })),
    })
    const { releaseId } = await publishRelease(it, { tables: [table('notes', 'a')] })
    const kept = await publishRelease(it, { tables: [table('notes', 'b')] })
    let live: unknown
    it.engine.retainOnly = async (releases) => {
      live = [...releases]
      return 1
    }
    giveUp(releaseId)
    await it.product.engineCollection.settled()
    const indexes = [[], ['b']].map((fields) => ({ table: 'notes', fields }))
    expect(live).toEqual([[kept.releaseId, indexes]])
    expect(it.log.records().filter(({ event }) => event === 'product.indexes_dropped')).toEqual([
      expect.objectContaining({ dropped: 1 }),
    ])
  })

  test('of an unknown Release finds nothing', async () => {
    expect(await fault(() => giveUp(it.system.ids.make('rel')))).toBe('PRODUCT_NOT_FOUND')
  })

  test('of what a Channel is bound to is refused, of what it was bound to is not', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    await bind(a)
    await bind(a, 'beta')
    expect(await fault(() => giveUp(a))).toBe('PRODUCT_STATE_CONFLICT')
    expect(refusalsOf(a)).toEqual([
      'releaseId: not bound to the Channel beta',
      'releaseId: not bound to the Channel production',
    ])
    await bind(b)
    await bind(b, 'beta')
    giveUp(a)
    expect(stateOf(a)).toBe('retired')
  })

  test('of what a Channel still serves, although it is bound to another, is refused', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    await bind(a)
    const warm = Promise.withResolvers<void>()
    it.engine.isWarm = ({ releaseId }) => releaseId !== b
    it.engine.warm = () => warm.promise
    await bind(b)
    expect(refusalsOf(a)).toEqual(['releaseId: not served until what replaces it is ready'])
    warm.resolve()
    await it.product.serving.settled()
    giveUp(a)
    expect(stateOf(a)).toBe('retired')
  })

  test('leaves what another Release is made of too', async () => {
    const functions = [functionManifest('a.b')]
    const first = await publishRelease(it, { source: 'same' })
    const second = await publishRelease(it, { source: 'same', functions })
    giveUp(first.releaseId)
    await it.product.collection.settled()
    expect(filesOf()).toEqual(namedOf())
    await it.product.releases.load(second.releaseId)
  })

  test('is told apart from damage by whoever was about to read the bytes', async () => {
    const { releaseId } = await publishRelease(it, { source: 'a', validate: false })
    const loading = it.product.releases.load(releaseId)
    giveUp(releaseId)
    rmSync(join(it.directory, 'artifacts', 'sha256'), { recursive: true })
    await expect(loading).rejects.toMatchObject({ code: 'PRODUCT_RELEASE_RETIRED' })
  })
})

describe('a retired Release', () => {
  const gone = { code: 'PRODUCT_RELEASE_RETIRED' }

  test('is gone for every use that an operator may ask for', async () => {
    const { releaseId } = await publishRelease(it, { source: 'a' })
    const next = (await publishRelease(it, { source: 'b' })).releaseId
    await bind(releaseId)
    await bind(next)
    giveUp(releaseId)
    const requestId = REQUEST_ID
    expect(await fault(() => bind(releaseId))).toBe('PRODUCT_RELEASE_RETIRED')
    const validation = validate(it.product, it.actor, { releaseId, against: null, requestId })
    await expect(validation).rejects.toMatchObject(gone)
    const back = rollback(it.product, it.actor, {
      channel: 'production',
      targetReleaseId: releaseId,
      expectedReleaseId: next,
      requestId,
    })
    await expect(back).rejects.toMatchObject(gone)
    await expect(listFunctions(it.product, `release:${releaseId}`)).rejects.toMatchObject(gone)
    await expect(it.product.releases.load(releaseId)).rejects.toMatchObject(gone)
  })

  test('is gone for an application, by its name and as the HEAD of a Workspace', async () => {
    await bind((await publishRelease(it, { source: 'bound' })).releaseId)
    const { releaseId } = await publishRelease(it, { source: 'a' })
    const scopes: ApplicationScope[] = ['query', 'workspace']
    const resolve = (target: string) =>
      resolveTarget(it.product, { scopes }, target, { affinity: () => '' })
    expect(resolve(`release:${releaseId}`)).toMatchObject({ releaseId })
    giveUp(releaseId)
    expect(await fault(() => resolve(`release:${releaseId}`))).toBe('RELEASE_RETIRED')
    expect(await fault(() => resolve('workspace:default'))).toBe('RELEASE_RETIRED')
  })
})

describe('a publication', () => {
  test(`retires what nothing uses beyond the newest ${RELEASES_KEPT}`, async () => {
    const head = await publishRelease(it, { workspace: 'other', source: 'head' })
    const bound = (await publishRelease(it, { source: 'bound' })).releaseId
    await bind(bound)
    const published: ReleaseId[] = []
    for (let i = 0; i < RELEASES_KEPT + 2; i++) {
      const { releaseId } = await publishRelease(it, { source: String(i), validate: i % 2 === 0 })
      published.push(releaseId)
    }
    expect(published.slice(0, 3).map(stateOf)).toEqual(['retired', 'retired', 'validated'])
    expect(stateOf(head.releaseId)).toBe('validated')
    expect(stateOf(bound)).toBe('validated')
    await it.product.collection.settled()
    expect(filesOf()).toEqual(namedOf())
    await it.product.audit.settled()
    const audited = it.audited.filter(({ operation }) => operation === 'product.release.retire')
    expect(audited.map(({ subject }) => subject)).toEqual(published.slice(0, 2))
  })
})

describe('the collection of artifacts', () => {
  test('never takes what a publication is about to name', async () => {
    // Goal: bytes that were left over are safe from the moment a publication counts on them.
    // Method: a few contents are published and retired at random, all at once.
    const seed = Number(process.env.SVC_SEED ?? Date.now() >>> 0)
    const random = new Random(seed)
    const heads = new Map<string, ExpectedHead>()
    const turn = async (workspace: string): Promise<void> => {
      for (let i = 0; i < 25; i++) {
        const published = await publish(it.product, it.actor, {
          frame: [makePackage({ workspace, source: String(random.below(2)) })],
          expectedHead: heads.get(workspace) ?? 'empty',
          requestId: REQUEST_ID,
          authorized: AUTHORIZED,
        })
        heads.set(workspace, published.revisionId)
        if (random.chance(2)) await it.product.releases.load(published.releaseId)
        if (random.chance(2)) giveUp(published.releaseId)
        else await it.product.releases.load(published.releaseId)
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(turn))
    await it.product.collection.settled()
    expect(filesOf(), `SVC_SEED=${seed}`).toEqual(namedOf())
    for (const { releaseId, state } of readStatus(it.product).releases) {
      if (state === 'retired') continue
      it.product.releases.forget(releaseId)
      await it.product.releases.load(releaseId)
    }
  })

  test('removes what a dead process left, when the root is opened again', async () => {
    const { directory } = it
    await publishRelease(it, { source: 'a' })
    const orphan = `sha256:${'ab'.repeat(32)}`
    await it.root.artifacts.put(orphan, new Uint8Array(3))
    expect(filesOf()).toContain(orphan)
    it.product.root.close()
    it = await openTestProduct({ directory })
    await it.product.collection.settled()
    expect(filesOf()).toEqual(namedOf())
    expect(it.log.text()).toContain('product.artifacts_collected')
  })

  test('that dies anywhere leaves every Release that is not retired whole', async () => {
    // Goal: kill -9 at each durable step of a retirement loses nothing that is still named.
    // Method: a child retires and kills itself before its nth step; then look, and do it again.
    let outcome = { deaths: 0, completed: false }
    for (let deathAt = 0; !outcome.completed; deathAt++) {
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
      await after.product.collection.settled()
      expect(filesOf(after)).toEqual(namedOf(after))
      expect(namedOf(after)).toHaveLength(4)
      await after.product.audit.settled()
      const audits = after.audited.filter(({ operation }) => /retire$/.test(operation))
      expect(audits.length).toBeLessThanOrEqual(1)
      await after.close()
    }
    expect(outcome.deaths).toBeGreaterThan(8)
  })
})
