/** The catalogs of a target: its Functions and its tables. */
import { listFunctions, listTables } from '../../product/releases/catalogs.ts'
import { CatalogQuery, FunctionCatalog, TableCatalog } from '../../wire/catalogs.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const catalogRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/functions',
    name: 'listFunctions',
    summary: 'Lists the Functions of a target with their validators.',
    capability: 'releases:read',
    query: CatalogQuery,
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
            storage: item.uses?.storage ?? 'none',
          },
        })),
      }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/schema/tables',
    name: 'listTables',
    summary: 'Lists the tables of a target with their fields and indexes.',
    capability: 'releases:read',
    query: CatalogQuery,
    replies: { 200: TableCatalog },
    errors: ['PRODUCT_INVALID', 'PRODUCT_RELEASE_RETIRED'],
    async handle({ app, query }) {
      const { releaseId, tables } = await listTables(app.product, query.target)
      const body: TableCatalog = {
        version: 1,
        releaseId,
        tables: tables.map(({ name, fields, indexes }) => ({
          name,
          fields,
          indexes: indexes.map((index) => ({ ...index, fields: [...index.fields] })),
        })),
      }
      return { status: 200, body }
    },
  }),
]
