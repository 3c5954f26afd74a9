/** A process that publishes into a new root and kills itself before the nth durable step. */
import { join } from 'node:path'
import type { AuditOutbox } from '../../src/product/audit/audit-outbox.ts'
import { publish } from '../../src/product/workspaces/publish.ts'
import { ArtifactStore } from '../../src/storage/artifacts.ts'
import { makeRoot } from '../product-roots.ts'
import { AUTHORIZED, makePackage, openTestProduct, REQUEST_ID } from '../products.ts'
import { dyingControl, dyingFiles } from './steps.ts'

const directory = makeRoot()
process.stdout.write(`${directory}\n`)
const { product, actor, root } = await openTestProduct({ directory })
const artifacts = new ArtifactStore(join(directory, 'artifacts'), dyingFiles)
const control = dyingControl(root.control)
// Delivers nothing: the record must reach the trail from the next process of the root.
const audit = {
  append: product.audit.append.bind(product.audit),
  deliver: () => undefined,
} as unknown as AuditOutbox
const dying = { ...product, audit, root: { ...root, artifacts, control } }
const frame = [makePackage({ source: 'dying' })]
const request = { expectedHead: 'empty', requestId: REQUEST_ID, authorized: AUTHORIZED } as const
await publish(dying, actor, { frame, ...request })
process.stdout.write('published\n')
process.exit(0)
