/**
 * A process that retires the first of three Releases and removes its bytes, and kills itself before
 * the nth durable step. The second Release has the artifact of the first, the third its own.
 */
import { join } from 'node:path'
import { ArtifactCollection } from '../../../src/product/releases/artifact-collection.ts'
import { retire } from '../../../src/product/releases/retire.ts'
import { ArtifactStore } from '../../../src/storage/artifacts.ts'
import { makeRoot } from '../product-roots.ts'
import { functionManifest, openTestProduct, publishRelease, REQUEST_ID } from '../products.ts'
import { dyingControl, dyingFiles } from './steps.ts'

const directory = makeRoot()
const it = await openTestProduct({ directory })
const { product, actor, root } = it
const published = [
  await publishRelease(it, { source: 'shared', workspace: 'first' }),
  await publishRelease(it, { source: 'shared', functions: [functionManifest('a.b')] }),
  await publishRelease(it, { source: 'own' }),
]
process.stdout.write(`${[directory, ...published.map(({ releaseId }) => releaseId)].join(' ')}\n`)
await product.collection.whenIdle()
const artifacts = new ArtifactStore(join(directory, 'artifacts'), dyingFiles)
const control = dyingControl(root.control)
const collection = new ArtifactCollection({ log: product.log, control, artifacts })
const releaseId = published[0]!.releaseId
const dying = { ...product, collection, root: { ...root, artifacts, control } }
retire(dying, actor, { releaseId, requestId: REQUEST_ID })
await collection.whenIdle()
process.stdout.write('retired\n')
process.exit(0)
