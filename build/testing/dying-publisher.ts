/**
 * A process that publishes into a new root and kills itself before the nth durable step: each file
 * operation of the artifacts and each statement of the control transaction is one.
 */
import { join } from 'node:path'
import type { AuditOutbox } from '../../src/product/audit.ts'
import { publish } from '../../src/product/workspaces.ts'
import { ArtifactStore } from '../../src/storage/artifacts.ts'
import type { ControlTx } from '../../src/storage/control/database.ts'
import { type Files, realFiles } from '../../src/storage/files.ts'
import { makeRoot } from './product-roots.ts'
import { makePackage, openTestProduct, REQUEST_ID } from './products.ts'

const deathAt = Number(process.argv[2])
let steps = 0
function step(): void {
  if (steps++ === deathAt) process.kill(process.pid, 'SIGKILL')
}

/** Every method of `target`, and of the handles that it opens, is a step. */
function counted<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name) {
      const value = Reflect.get(object, name) as unknown
      if (typeof value !== 'function') return value
      return async (...parameters: unknown[]) => {
        step()
        const result: unknown = await Reflect.apply(value, object, parameters)
        return name === 'open' ? counted(result as object) : result
      }
    },
  })
}

const directory = makeRoot()
process.stdout.write(`${directory}\n`)
const { product, actor, root } = await openTestProduct({ directory })
const artifacts = new ArtifactStore(join(directory, 'artifacts'), counted<Files>(realFiles))
const control = new Proxy(root.control, {
  get(database, name) {
    const value = Reflect.get(database, name) as unknown
    if (name !== 'transaction') return (value as () => unknown).bind(database)
    return (work: (tx: ControlTx) => unknown) => {
      step()
      const result = database.transaction((tx) =>
        work({
          ...tx,
          run: (...parameters) => {
            step()
            const changes = tx.run(...parameters)
            step()
            return changes
          },
        }),
      )
      step()
      return result
    }
  },
})
// The record must reach the trail through the outbox, from the process that comes after.
const audit = {
  append: product.audit.append.bind(product.audit),
  deliver: () => undefined,
} as unknown as AuditOutbox
const dying = { ...product, audit, root: { ...root, artifacts, control } }
const frame = [makePackage({ source: 'dying' })]
await publish(dying, actor, { frame, expectedHead: 'empty', requestId: REQUEST_ID })
process.stdout.write('published\n')
process.exit(0)
