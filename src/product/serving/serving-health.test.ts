import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestProduct, publishRelease, type TestProduct } from '../../../testing/products.ts'
import { bindChannel } from '../../../testing/releases.ts'
import { findRelease } from '../../storage/control/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { closeProduct } from '../product.ts'
import { ServingHealth } from './serving-health.ts'

let harness: TestProduct
let health: ServingHealth
let first: ReleaseId
beforeEach(async () => {
  harness = await openTestProduct()
  first = (await publishRelease(harness, { source: 'first' })).releaseId
  health = healthOf(harness)
})
afterEach(() => harness.close())

const healthOf = ({ product, log }: TestProduct) => new ServingHealth({ ...product, log: log.log })
const status = async () => (await health.check()).status
const files = () => join(harness.directory, 'artifacts/sha256')
const reports = () =>
  harness.log.records().filter(({ event }) => event === 'product.release_damaged')

async function bind(releaseId: ReleaseId, expectedReleaseId: ReleaseId | 'empty'): Promise<void> {
  await bindChannel(harness, releaseId, { expectedReleaseId })
  await harness.product.serving.whenIdle()
}

/** Closes the Product and opens its root again. */
async function restart(): Promise<void> {
  const { directory } = harness
  await closeProduct(harness.product)
  harness = await openTestProduct({ directory })
  health = healthOf(harness)
  await harness.product.serving.whenIdle()
}

test('an Environment that serves nothing yet is healthy', async () => {
  rmSync(files(), { recursive: true })
  expect(await status()).toBe('healthy')
})

test('a served Release whose files vanish is degraded, and named once', async () => {
  await bind(first, 'empty')
  expect(await status()).toBe('healthy')
  renameSync(files(), `${files()}-away`)
  expect([await status(), await status()]).toEqual(['degraded', 'degraded'])
  expect(reports()).toMatchObject([{ releaseId: first, level: 'error' }])
  renameSync(`${files()}-away`, files())
  expect(await status()).toBe('healthy')
  expect(harness.product.serving.canServe()).toBe(true)
})

test('no target can be served after a restart without files, until they are back', async () => {
  await bind(first, 'empty')
  renameSync(files(), `${files()}-away`)
  await restart()
  expect([await status(), harness.product.serving.canServe()]).toEqual(['unavailable', false])
  rmSync(files(), { recursive: true })
  renameSync(`${files()}-away`, files())
  harness.system.advance(1_000)
  // The probe itself causes the next attempt, because no call arrives meanwhile.
  expect(harness.product.serving.canServe()).toBe(false)
  await harness.product.serving.whenIdle()
  expect([await status(), harness.product.serving.canServe()]).toEqual(['healthy', true])
})

test('the health is not unavailable while one target serves', async () => {
  const second = (await publishRelease(harness, { source: 'second' })).releaseId
  await bind(first, 'empty')
  await bindChannel(harness, second, { channel: 'staging', expectedReleaseId: 'empty' })
  const { manifest, artifact } = harness.root.control.read((r) => findRelease(r, second)!)
  for (const { digest } of [manifest, artifact]) await harness.root.artifacts.remove(digest)
  await restart()
  expect([await status(), harness.product.serving.canServe()]).toEqual(['degraded', true])
})

test('a Release that still loads does not count as a failure', async () => {
  await bind(first, 'empty')
  const { directory } = harness
  await closeProduct(harness.product)
  harness = await openTestProduct({ directory })
  expect(harness.product.serving.canServe()).toBe(true)
  expect(await healthOf(harness).check()).toEqual({ name: 'releases', status: 'healthy' })
})
