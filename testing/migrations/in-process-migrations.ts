/** Migrations of tests whose handlers run in this process: their manifests and their code. */
import type { MigrationManifest } from '../../src/value/manifest.ts'
import { migrationFunction } from '../../src/value/migrations/migrations.ts'
import type { Loose, TestHandler } from '../engine/in-process-pool.ts'

export function migrationManifest(
  name: string,
  more: Partial<MigrationManifest> = {},
): MigrationManifest {
  const digest = `sha256:${Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64)}`
  return { name, table: 'tasks', index: null, batch: 500, digest, ...more }
}

/** Returns the handler of a migration, by its name among those of Functions. */
export function migrationHandler(
  name: string,
  each: (document: Loose) => object | null,
): Record<string, TestHandler> {
  const handler: TestHandler = (_, { documents }: { documents: readonly Loose[] }) => ({
    patches: documents.map((document) => {
      const patch = each(document)
      return patch === null ? null : JSON.stringify([patch, []])
    }),
    failure: null,
  })
  return { [migrationFunction(name)]: handler }
}
