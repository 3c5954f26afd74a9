/** The catalogs of a target: its Functions and its tables. */
import { listFunctions, listTables } from '../../product/releases/catalogs.ts'
import type { FunctionCatalog, TableCatalog } from '../../wire/catalogs.ts'
import { catalogOperations } from '../../wire/operations/catalogs.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const catalogRoutes: readonly Route<ProductApp>[] = bind(catalogOperations, {
  async listFunctions({ app, query }) {
    const { releaseId, functions, http } = await listFunctions(app.product, query.target)
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
      ...(http.length > 0 && { http: http as unknown as NonNullable<FunctionCatalog['http']> }),
    }
    return { status: 200, body }
  },

  async listTables({ app, query }) {
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
})
