import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../build/testing/products.ts'
import { Fault } from '../errors/fault.ts'
import type { ReleaseId } from '../value/ids.ts'
import { promote } from './channels.ts'
import { readEnvironment } from './environments.ts'
import { closeProduct } from './product.ts'
import { readStatus } from './status.ts'

let it: TestProduct
beforeEach(async () => {
  it = await openTestProduct()
})
afterEach(() => it.close())

function bind(releaseId: ReleaseId, expectedReleaseId: 'empty' | ReleaseId | null = null) {
  return promote(it.product, it.actor, {
    channel: 'production',
    releaseId,
    expectedReleaseId,
    requestId: REQUEST_ID,
  })
}

function fault(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'none'
}

function setState(releaseId: ReleaseId, state: string): void {
  it.root.control.transaction((tx) =>
    tx.run('update releases set state = ? where release_id = ?', state, releaseId),
  )
}

describe('a promotion', () => {
  test('binds, moves and remembers', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    expect(bind(a, 'empty')).toMatchObject({
      name: 'production',
      releaseId: a,
      previousReleaseId: null,
      revision: 1n,
      serving: 'converged',
    })
    expect(bind(b, a)).toMatchObject({ releaseId: b, previousReleaseId: a, revision: 2n })
    expect(bind(a)).toMatchObject({ releaseId: a, previousReleaseId: b, revision: 3n })
    const { channels, revision } = readStatus(it.product)
    expect(channels).toMatchObject([{ name: 'production', releaseId: a, history: [b, a] }])
    expect(revision).toBe(7n)
    await it.product.audit.settled()
    expect(it.audited.slice(-3).map(({ subject }) => subject)).toEqual([
      `production:${a}`,
      `production:${b}`,
      `production:${a}`,
    ])
  })

  test('to what the Channel is bound to already changes nothing', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    bind(a, 'empty')
    const before = readStatus(it.product)
    expect(bind(a)).toMatchObject({ revision: 1n })
    expect(bind(a, a)).toMatchObject({ revision: 1n })
    expect(readStatus(it.product)).toEqual(before)
  })

  test('under another binding than the expected one is a conflict', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    expect(fault(() => bind(a, b))).toBe('PRODUCT_CAS_CONFLICT')
    bind(a, 'empty')
    expect(fault(() => bind(b, 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(fault(() => bind(b, b))).toBe('PRODUCT_CAS_CONFLICT')
    // A lost answer is reconciled by status, not by repeating a precondition that no longer holds.
    expect(fault(() => bind(a, 'empty'))).toBe('PRODUCT_CAS_CONFLICT')
    expect(readStatus(it.product).channels).toMatchObject([{ releaseId: a, revision: 1n }])
  })

  test.each([
    ['published', 'PRODUCT_STATE_CONFLICT'],
    ['rejected', 'PRODUCT_STATE_CONFLICT'],
    ['retired', 'PRODUCT_RELEASE_RETIRED'],
  ])('of a Release that is %s is refused', async (state, code) => {
    const { releaseId } = await publishRelease(it, { validate: state !== 'published' })
    if (state !== 'published') setState(releaseId, state)
    expect(fault(() => bind(releaseId))).toBe(code)
    expect(readStatus(it.product).channels).toEqual([])
  })

  test('of an unknown Release finds nothing', () => {
    expect(fault(() => bind(it.system.ids.make('rel')))).toBe('PRODUCT_NOT_FOUND')
  })
})

describe('serving', () => {
  async function reopen(): Promise<void> {
    const { directory } = it
    await closeProduct(it.product)
    it = await openTestProduct({ directory })
  }

  function damage(releaseId: ReleaseId): () => void {
    const { digest } = readStatus(it.product).releases.find(
      (release) => release.releaseId === releaseId,
    )!.artifact
    const hex = digest.slice('sha256:'.length)
    const path = join(it.directory, 'artifacts', 'sha256', hex.slice(0, 2), hex.slice(2))
    const bytes = readFileSync(path)
    writeFileSync(path, new Uint8Array(bytes.length))
    return () => writeFileSync(path, bytes)
  }

  test('is stopped without a Channel, starts with the process and then serves', async () => {
    expect(readEnvironment(it.product).observed.serving).toBe('stopped')
    const { releaseId } = await publishRelease(it, { source: 'a' })
    bind(releaseId)
    await reopen()
    expect(readEnvironment(it.product).observed.serving).toBe('starting')
    await it.product.serving.settled()
    expect(readEnvironment(it.product).observed.serving).toBe('serving')
    expect(it.product.serving.find('production')).toMatchObject({ releaseId, source: 'a' })
  })

  test('keeps the earlier Release until the next one is in memory', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    bind(a)
    await reopen()
    await it.product.serving.settled()
    const changes: string[] = []
    it.product.serving.listen((channel, release) => {
      changes.push(`${channel} ${release.releaseId}`)
    })
    expect(bind(b, a).serving).toBe('pending')
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: a })
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: b })
    expect(it.product.serving.state('production')).toBe('converged')
    expect(changes).toEqual([`production ${b}`])
  })

  test('keeps the earlier Release until a runner holds the next one', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    bind(a)
    const warm = Promise.withResolvers<void>()
    it.engine.isWarm = ({ releaseId }) => releaseId !== b
    it.engine.warm = () => warm.promise
    expect(bind(b, a).serving).toBe('pending')
    await Bun.sleep(20)
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: a })
    warm.resolve()
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: b })
  })

  test('begins all the same where no runner starts', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    it.engine.isWarm = () => false
    it.engine.warm = () => Promise.reject(new Fault('BUSY'))
    bind(a)
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: a })
    expect(it.log.text()).toContain('product.not_warm')
  })

  test('of the last of two quick promotions wins, whichever loads first', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    await reopen()
    const served: ReleaseId[] = []
    it.product.serving.listen((_, { releaseId }) => served.push(releaseId))
    bind(a)
    bind(b)
    await Bun.sleep(50)
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: b })
    expect(served).toEqual([b])
  })

  test('stays with the earlier Release where the next is damaged, until it is mended', async () => {
    const a = (await publishRelease(it, { source: 'a' })).releaseId
    const b = (await publishRelease(it, { source: 'b' })).releaseId
    bind(a)
    await reopen()
    await it.product.serving.settled()
    const mend = damage(b)
    bind(b, a)
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: a })
    expect(it.product.serving.state('production')).toBe('pending')
    expect(it.log.text()).toContain('product.serving_failed')
    mend()
    it.system.advance(1_000)
    it.product.serving.find('production')
    await it.product.serving.settled()
    expect(it.product.serving.find('production')).toMatchObject({ releaseId: b })
  })

  test('of a damaged Release alone fails, and reads the disk at most once a second', async () => {
    const { releaseId } = await publishRelease(it, { source: 'a' })
    bind(releaseId)
    await reopen()
    damage(releaseId)
    await it.product.serving.settled()
    const failures = () => it.log.text().split('product.serving_failed').length - 1
    const before = failures()
    for (let i = 0; i < 5; i++) {
      await expect(it.product.serving.find('production')).rejects.toMatchObject({
        code: expect.stringMatching(/^PRODUCT_(CORRUPT|UNAVAILABLE)$/),
      })
    }
    expect(failures() - before).toBeLessThanOrEqual(1)
    it.system.advance(1_000)
    await expect(it.product.serving.find('production')).rejects.toMatchObject({
      code: 'PRODUCT_CORRUPT',
    })
  })
})
