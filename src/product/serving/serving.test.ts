/** Serving after a restart, and the shares of a weighted policy. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  openTestProduct,
  publishRelease,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { changeEnvironment, readEnvironment } from '../environments/environments.ts'
import type { LoadedRelease } from '../ports.ts'
import { closeProduct } from '../product.ts'
import { retire } from '../releases/retire.ts'
import { readServingPolicy, setServingPolicy } from './serving-policy.ts'
import { pickRelease } from './target-resolution.ts'

let harness: TestProduct
let first: ReleaseId
let second: ReleaseId
beforeEach(async () => {
  harness = await openTestProduct()
  first = (await publishRelease(harness, { source: 'first' })).releaseId
  second = (await publishRelease(harness, { source: 'second' })).releaseId
})
afterEach(() => harness.close())

async function reopen(configure: (opened: TestProduct) => void = () => undefined): Promise<void> {
  const { directory } = harness
  await closeProduct(harness.product)
  harness = await openTestProduct({ directory })
  configure(harness)
}

const desire = (releaseId: ReleaseId, expectedRevision: bigint) =>
  setServingPolicy(harness.product, harness.actor, {
    operationId: harness.system.ids.make('opn'),
    expectedRevision,
    mode: 'atomic',
    releases: [{ releaseId, weight: 10_000 }],
    changedAtMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })

async function set(releaseId: ReleaseId, expectedRevision: bigint): Promise<void> {
  await desire(releaseId, expectedRevision)
  await harness.product.serving.whenIdle()
}

const bind = (releaseId: ReleaseId) =>
  bindChannel(harness, releaseId, { expectedReleaseId: 'empty' })

function change(verb: 'archive' | 'restore', expectedRevision: bigint): void {
  changeEnvironment(harness.product, harness.actor, {
    operationId: harness.system.ids.make('opn'),
    change: { verb, expectedRevision },
    changedAtMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
  })
}

const served = () =>
  harness.product.serving.observedPolicy?.releases.map(({ release }) => release.releaseId) ?? []

describe('a restarted server', () => {
  test('a restart serves the stored policy with the time of its first convergence', async () => {
    await set(first, 0n)
    const before = readServingPolicy(harness.product)
    harness.system.advance(5_000)
    await reopen()
    expect(harness.product.serving.isStarted).toBe(true)
    await harness.product.serving.whenIdle()
    expect(served()).toEqual([first])
    expect(readServingPolicy(harness.product)).toEqual(before)
    expect(harness.product.serving.overall()).toBe('serving')
  })

  test('a restarted server holds the first call until the policy is loaded', async () => {
    await set(first, 0n)
    await reopen()
    const policy = await harness.product.serving.findPolicy()
    expect(policy?.releases).toMatchObject([{ release: { releaseId: first }, weight: 10_000 }])
  })

  test('a restart serves the last converged policy until the desired one is ready', async () => {
    await set(first, 0n)
    harness.engine.warm = () => Promise.reject(new RangeError('no runner'))
    await set(second, 1n)
    await reopen((opened) => {
      opened.engine.warm = async ({ releaseId }) => {
        if (releaseId === second) throw new RangeError('no runner')
      }
    })
    await harness.product.serving.whenIdle()
    expect(served()).toEqual([first])
    expect(harness.product.serving.overall()).toBe('starting')
    harness.engine.warm = async () => undefined
    harness.system.advance(1_000)
    await harness.product.serving.findPolicy()
    await harness.product.serving.whenIdle()
    expect(served()).toEqual([second])
  })

  test('an archived Environment stays so after a restart, until it is restored', async () => {
    await set(first, 0n)
    await bind(second)
    change('archive', 0n)
    await reopen()
    await harness.product.serving.whenIdle()
    expect(harness.product.serving.isStarted).toBe(false)
    expect(readEnvironment(harness.product).observed).toEqual({
      revision: '1',
      lifecycle: 'archived',
      serving: 'stopped',
    })
    change('restore', 1n)
    await harness.product.serving.whenIdle()
    expect(served()).toEqual([first])
    expect(harness.product.serving.find('production')).toMatchObject({ releaseId: second })
  })
})

describe('serving', () => {
  test('the engine learns which Releases are served, and that an archive ends all', async () => {
    await bind(second)
    await set(first, 0n)
    await expect.poll(() => harness.engine.served).toEqual(new Set([first, second]))
    change('archive', 0n)
    expect(harness.engine.served).toEqual(new Set())
  })

  test('serving that was stopped does not start with a Release that is still loading', async () => {
    const started = Promise.withResolvers<void>()
    harness.engine.isWarm = () => false
    harness.engine.warm = () => started.promise
    const changes: string[] = []
    harness.product.serving.listen((channel) => changes.push(channel))
    await bind(second)
    const setting = set(first, 0n)
    await expect.poll(() => harness.product.serving.isStarted).toBe(true)
    await expect.poll(() => readServingPolicy(harness.product).desired.revision).toBe('1')
    change('archive', 0n)
    started.resolve()
    await setting
    await Bun.sleep(20)
    expect([harness.product.serving.isStarted, served(), changes]).toEqual([false, [], []])
    expect(harness.log.text()).not.toContain('product.policy_served')
  })

  test('a policy whose Release is retired during its check is rejected', async () => {
    const setting = set(first, 0n)
    retire(harness.product, harness.actor, { releaseId: first, requestId: REQUEST_ID })
    await expect(setting).rejects.toMatchObject({ code: 'PRODUCT_RELEASE_RETIRED' })
    expect(readServingPolicy(harness.product).desired.revision).toBe('0')
  })

  test('what another process serves is awaited until the load that replaced it ends', async () => {
    await set(first, 0n)
    const third = (await publishRelease(harness, { source: 'third' })).releaseId
    const loads = new Map([second, third].map((id) => [id, Promise.withResolvers<void>()]))
    harness.engine.warm = async ({ releaseId }) => loads.get(releaseId)?.promise
    await desire(second, 1n)
    const serving = harness.product.serving.whenServing(new Map())
    await desire(third, 2n)
    loads.get(second)!.resolve()
    setImmediate(() => setImmediate(() => loads.get(third)!.resolve()))
    await serving
    expect(served()).toEqual([third])
  })

  test('serving converges on the last of two policies, whichever is ready first', async () => {
    const slow = Promise.withResolvers<void>()
    harness.engine.warm = ({ releaseId }) =>
      releaseId === first ? slow.promise : Promise.resolve()
    const setFirst = set(first, 0n)
    await expect.poll(() => readServingPolicy(harness.product).desired.revision).toBe('1')
    const setSecond = set(second, 1n)
    await expect.poll(served).toEqual([second])
    slow.resolve()
    await Promise.all([setFirst, setSecond])
    expect(served()).toEqual([second])
    expect(readServingPolicy(harness.product).observed.revision).toBe('2')
  })
})

test('a policy distributes callers by weight and keeps each key on one Release', {
  tags: ['slow'],
}, () => {
  const names = ['a', 'b', 'c']
  const policy = (weights: readonly number[]) => ({
    revision: 1n,
    convergedAtMicros: 0n,
    releases: names.map((name, i) => ({
      release: { source: name } as LoadedRelease,
      weight: weights[i]!,
    })),
  })
  const count = (weights: readonly number[]) => {
    const counts = new Map(names.map((name) => [name, 0]))
    for (let i = 0; i < 20_000; i++) {
      const { source } = pickRelease(policy(weights), `crd_1/caller-${i}`)
      expect(pickRelease(policy(weights), `crd_1/caller-${i}`).source).toBe(source)
      counts.set(source, counts.get(source)! + 1)
    }
    return names.map((name) => counts.get(name)! / 2)
  }
  for (const weights of [
    [1_000, 2_000, 7_000],
    [1, 1, 9_998],
    [3_333, 3_333, 3_334],
  ]) {
    // Five standard deviations of 20,000 draws, in units of the weights.
    const found = count(weights)
    found.forEach((share, i) => {
      const probability = weights[i]! / 10_000
      const deviation = (Math.sqrt(20_000 * probability * (1 - probability)) * 5) / 2
      expect(Math.abs(share - weights[i]!), `${names[i]} of ${weights}`).toBeLessThan(deviation)
    })
  }
})
