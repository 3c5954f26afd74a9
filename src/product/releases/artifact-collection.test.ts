import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  AUTHORIZED,
  makePackage,
  openTestProduct,
  REQUEST_ID,
  type TestProduct,
  workspaceParts,
} from '../../../testing/products.ts'
import { ArtifactStore } from '../../storage/artifacts.ts'
import { type Files, realFiles } from '../../storage/files.ts'
import { sha256 } from '../../system/digests.ts'
import { digestName } from '../../value/packages/workspace-package.ts'
import type { Product } from '../product.ts'
import { publish } from '../workspaces/publish.ts'
import { ArtifactCollection } from './artifact-collection.ts'

/*
 * Goal: a publication that runs during a removal keeps the bytes that it references. Method: the
 * removal of one file is held back, while the bytes of the package are stored but not referenced.
 */

const PACKAGE = makePackage({ source: 'left over' })
const { artifact: ARTIFACT } = workspaceParts({ source: 'left over' })
const DIGEST = digestName(sha256(ARTIFACT))
/** A digest that is listed before the other. */
const FIRST = `sha256:${'0'.repeat(64)}`

let harness: TestProduct
let product: Product
let held: PromiseWithResolvers<void>
let isHeld: PromiseWithResolvers<void>

beforeEach(async () => {
  harness = await openTestProduct()
  await harness.product.collection.whenIdle()
})
afterEach(() => harness.close())

/** Starts a collection that holds the removal of `digest`; directories are listed in order. */
async function holdRemoval(digest: string): Promise<void> {
  held = Promise.withResolvers()
  isHeld = Promise.withResolvers()
  const files: Files = {
    ...realFiles,
    readdir: (async (path: string) =>
      (await realFiles.readdir(path)).toSorted()) as Files['readdir'],
    unlink: async (path) => {
      if (String(path).endsWith(digest.slice(-62))) {
        isHeld.resolve()
        await held.promise
      }
      await realFiles.unlink(path)
    },
  }
  const artifacts = new ArtifactStore(join(harness.directory, 'artifacts'), files)
  const { log, root } = harness.product
  const collection = new ArtifactCollection({ log, control: root.control, artifacts })
  product = { ...harness.product, collection, root: { ...root, artifacts } }
  await artifacts.put(FIRST, new Uint8Array(1))
  await artifacts.put(DIGEST, ARTIFACT)
  collection.collect()
  await isHeld.promise
}

function push() {
  const input = { frame: [PACKAGE], expectedHead: 'empty', requestId: REQUEST_ID } as const
  return publish(product, harness.actor, { ...input, authorized: AUTHORIZED })
}

test('bytes that were referenced since the files were listed are kept', async () => {
  await holdRemoval(FIRST)
  const { releaseId } = await push()
  held.resolve()
  await product.collection.whenIdle()
  await harness.product.releases.load(releaseId)
})

test('a publication waits for the removal of the bytes that it writes', async () => {
  await holdRemoval(DIGEST)
  let published = false
  const publication = push().finally(() => {
    published = true
  })
  await Bun.sleep(50)
  expect(published).toBe(false)
  held.resolve()
  const { releaseId } = await publication
  await product.collection.whenIdle()
  await harness.product.releases.load(releaseId)
})

test('a file that cannot be removed blocks no publication and is removed later', async () => {
  await holdRemoval(FIRST)
  held.reject(Object.assign(new Error('no'), { code: 'EIO' }))
  await product.collection.whenIdle()
  expect(harness.log.text()).toContain('product.collection_failed')
  await harness.product.releases.load((await push()).releaseId)
  harness.product.collection.collect()
  await harness.product.collection.whenIdle()
  expect(await harness.root.artifacts.list()).not.toContain(FIRST)
})
