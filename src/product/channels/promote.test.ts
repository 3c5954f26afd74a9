import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openTestProduct, publishRelease, type TestProduct } from '../../../testing/products.ts'
import { bindChannel, faultCode } from '../../../testing/releases.ts'
import { Fault } from '../../errors/fault.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { readEnvironment } from '../environments/environments.ts'
import { readStatus } from '../environments/status.ts'
import { closeProduct } from '../product.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function bind(releaseId: ReleaseId, expectedReleaseId: 'empty' | ReleaseId | null = null) {
  return bindChannel(harness, releaseId, { expectedReleaseId })
}

function setState(releaseId: ReleaseId, state: string): void {
  harness.root.control.transaction((tx) =>
    tx.run('update releases set state = ? where release_id = ?', state, releaseId),
  )
}

describe('a promotion', () => {
  test('a promotion binds a Channel, moves it and records its history', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    expect(await bind(a, 'empty')).toMatchObject({
      name: 'production',
      releaseId: a,
      previousReleaseId: null,
      revision: 1n,
      serving: 'converged',
    })
    expect(await bind(b, a)).toMatchObject({ releaseId: b, previousReleaseId: a, revision: 2n })
    expect(await bind(a)).toMatchObject({ releaseId: a, previousReleaseId: b, revision: 3n })
    const { channels, revision } = readStatus(harness.product)
    expect(channels).toMatchObject([{ name: 'production', releaseId: a, history: [b, a] }])
    expect(revision).toBe(7n)
    await harness.product.audit.whenIdle()
    expect(harness.audited.slice(-3).map(({ subject }) => subject)).toEqual([
      `production:${a}`,
      `production:${b}`,
      `production:${a}`,
    ])
  })

  test('a promotion of the Release that the Channel is bound to changes nothing', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    await bind(a, 'empty')
    const before = readStatus(harness.product)
    expect(await bind(a)).toMatchObject({ revision: 1n })
    expect(await bind(a, a)).toMatchObject({ revision: 1n })
    expect(readStatus(harness.product)).toEqual(before)
  })

  test('a promotion under another binding than the expected one conflicts', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    expect(await faultCode(() => bind(a, b))).toBe('PRODUCT_CAS_CONFLICT')
    await bind(a, 'empty')
    expect(await faultCode(() => bind(b, 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(await faultCode(() => bind(b, b))).toBe('PRODUCT_CAS_CONFLICT')
    // A lost response is reconciled by status, not by repeating a stale precondition.
    expect(await faultCode(() => bind(a, 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(readStatus(harness.product).channels).toMatchObject([{ releaseId: a, revision: 1n }])
  })

  test.each([
    ['published', 'PRODUCT_STATE_CONFLICT'],
    ['rejected', 'PRODUCT_STATE_CONFLICT'],
    ['retired', 'PRODUCT_RELEASE_RETIRED'],
  ])('a promotion of a Release that is %s is rejected', async (state, code) => {
    const { releaseId } = await publishRelease(harness, { validate: state !== 'published' })
    if (state !== 'published') setState(releaseId, state)
    expect(await faultCode(() => bind(releaseId))).toBe(code)
    expect(readStatus(harness.product).channels).toEqual([])
  })

  test('a promotion of an unknown Release is rejected', async () => {
    expect(await faultCode(() => bind(harness.system.ids.make('rel')))).toBe('PRODUCT_NOT_FOUND')
  })
})

describe('serving', () => {
  async function reopen(): Promise<void> {
    const { directory } = harness
    await closeProduct(harness.product)
    harness = await openTestProduct({ directory })
  }

  function damage(releaseId: ReleaseId): () => void {
    const { digest } = readStatus(harness.product).releases.find(
      (release) => release.releaseId === releaseId,
    )!.artifact
    const hex = digest.slice('sha256:'.length)
    const path = join(harness.directory, 'artifacts', 'sha256', hex.slice(0, 2), hex.slice(2))
    const bytes = readFileSync(path)
    writeFileSync(path, new Uint8Array(bytes.length))
    return () => writeFileSync(path, bytes)
  }

  test('serving is stopped without a Channel, and starting until it is loaded', async () => {
    expect(readEnvironment(harness.product).observed.serving).toBe('stopped')
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    await bind(releaseId)
    await reopen()
    expect(readEnvironment(harness.product).observed.serving).toBe('starting')
    await harness.product.serving.whenIdle()
    expect(readEnvironment(harness.product).observed.serving).toBe('serving')
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId, source: 'a' })
  })

  test('a Channel serves the earlier Release until a runner holds the next one', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    await bind(a)
    const changes: string[] = []
    harness.product.serving.listen((channel, release) => {
      changes.push(`${channel} ${release.releaseId}`)
    })
    const warm = Promise.withResolvers<void>()
    harness.engine.isWarm = ({ releaseId }) => releaseId !== b
    harness.engine.warm = () => warm.promise
    expect((await bind(b, a)).serving).toBe('pending')
    await Bun.sleep(20)
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: a })
    warm.resolve()
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: b })
    expect(harness.product.serving.state('production')).toBe('converged')
    expect(changes).toEqual([`production ${b}`])
  })

  test('serving starts even if no runner starts', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    harness.engine.isWarm = () => false
    harness.engine.warm = () => Promise.reject(new Fault('BUSY'))
    await bind(a)
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: a })
    expect(harness.log.text()).toContain('product.not_warm')
  })

  test('serving converges on the last of two quick promotions, whichever loads first', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    const served: ReleaseId[] = []
    harness.product.serving.listen((_, { releaseId }) => served.push(releaseId))
    const warm = Promise.withResolvers<void>()
    harness.engine.isWarm = () => false
    harness.engine.warm = async ({ releaseId }) => (releaseId === a ? warm.promise : undefined)
    await bind(a)
    await bind(b)
    warm.resolve()
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: b })
    expect(served).toEqual([b])
  })

  test('serving never moves to a damaged Release, and moves away from one', async () => {
    const a = (await publishRelease(harness, { source: 'a' })).releaseId
    const b = (await publishRelease(harness, { source: 'b' })).releaseId
    await bind(a)
    await reopen()
    const repair = damage(b)
    await expect(bind(b, a)).rejects.toMatchObject({ code: 'PRODUCT_CORRUPT' })
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: a })
    repair()
    await reopen()
    damage(a)
    await bind(b, a)
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: b })
  })

  test('calls of a damaged Release fail, and read the disk at most once a second', async () => {
    const { releaseId } = await publishRelease(harness, { source: 'a' })
    await bind(releaseId)
    await reopen()
    damage(releaseId)
    await harness.product.serving.whenIdle()
    const failures = () => harness.log.text().split('product.serving_failed').length - 1
    const before = failures()
    for (let i = 0; i < 5; i++) {
      await expect(harness.product.serving.find('production')).rejects.toMatchObject({
        code: expect.stringMatching(/^PRODUCT_(CORRUPT|UNAVAILABLE)$/),
      })
    }
    expect(failures() - before).toBeLessThanOrEqual(1)
    harness.system.advance(1_000)
    await expect(harness.product.serving.find('production')).rejects.toMatchObject({
      code: 'PRODUCT_CORRUPT',
    })
  })
})
