/** The Function catalog of a target. */
import { Fault } from '../../errors/fault.ts'
import { listFunctions } from '../../product/functions.ts'
import type { FunctionCatalog } from '../../wire/functions.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const functionRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/functions',
    capability: 'releases:read',
    query: ['target'],
    async handle({ app, query }) {
      const { releaseId, functions } = await listFunctions(app.product, readTarget(query.target))
      const body: FunctionCatalog = {
        version: 1,
        releaseId,
        functions: functions.map((item) => ({
          ...item,
          clients: [...item.clients],
          errors: { ...item.errors },
          uses: {
            network: [...(item.uses?.network ?? [])],
            secrets: [...(item.uses?.secrets ?? [])],
          },
        })),
      }
      return { status: 200, body }
    },
  }),
]

/** There is no default: a target is named or the request is wrong (Document 2, Targets). */
function readTarget(target: string | undefined): string {
  if (target !== undefined) return target
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: 'query.target', rule: 'a target' }],
  })
}
