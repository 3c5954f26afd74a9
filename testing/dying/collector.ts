/**
 * A process that retires the first of three Releases, removes its bytes and kills itself before the
 * nth durable step. The second Release shares the artifact of the first, the third has another.
 */
import { join } from 'node:path'
import { ArtifactCollection } from '../../src/product/releases/artifact-collection.ts'
import { retire } from '../../src/product/releases/retire.ts'
import { ArtifactStore } from '../../src/storage/artifacts.ts'
import { makeRoot } from '../product-roots.ts'
import { functionManifest, openTestProduct, publishRelease, REQUEST_ID } from '../products.ts'
import { dyingControl, dyingFiles } from './steps.ts'

const directory = makeRoot()
const harness = await openTestProduct({ directory })
const { product, actor, root } = harness
const published = [
  await publishRelease(harness, { source: 'shared', workspace: 'first' }),
  await publishRelease(harness, { source: 'shared', functions: [functionManifest('a.b')] }),
  await publishRelease(harness, { source: 'own' }),
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
