/** Migrations: the progress of those of a Release, the actions on one, and dry runs. */
import {
  actOnMigration,
  listMigrations,
  previewMigration,
} from '../../product/migrations/migrations.ts'
import type { MigrationActed, MigrationList } from '../../wire/migrations/migrations.ts'
import { migrationOperations } from '../../wire/operations/migrations.ts'
import { lookUp, operationField } from './idempotency-operations.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const migrationRoutes: readonly Route<ProductApp>[] = bind(migrationOperations, {
  async listMigrations({ app, query: { release = null } }) {
    const { releaseId, migrations } = await listMigrations(app.product, release)
    const body: MigrationList = { version: 1, releaseId, migrations: [...migrations] }
    return { status: 200, body }
  },

  async actOnMigration({ app, actor, params, operationId, body: asked, requestId }) {
    const { releaseId, action } = asked
    const named = { name: params.migration, releaseId }
    if (action === 'dry-run') {
      const { item, documents } = await previewMigration(app.product, named)
      const shown = [...documents]
      const body: MigrationActed = { version: 1, ...item, operation: null, documents: shown }
      return { status: 200, body }
    }
    const changedAtMicros = BigInt(asked.changedAtMicros)
    const input = { ...named, action, operationId, changedAtMicros, requestId }
    const { result, operation } = await actOnMigration(app.product, actor, input)
    const body: MigrationActed = {
      version: 1,
      ...result,
      operation: operationField(operation),
      documents: null,
    }
    return { status: 200, body }
  },

  readMigrationOperation: lookUp('migration'),
})
