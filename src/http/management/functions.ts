/** The Function catalog of a target. */
import { listFunctions } from '../../product/releases/functions.ts'
import { FunctionCatalog, FunctionsQuery } from '../../wire/functions.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const functionRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/functions',
    name: 'listFunctions',
    summary: 'Lists the Functions of a target with their validators.',
    capability: 'releases:read',
    query: FunctionsQuery,
    replies: { 200: FunctionCatalog },
    errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'],
    async handle({ app, query }) {
      const { releaseId, functions } = await listFunctions(app.product, query.target)
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
