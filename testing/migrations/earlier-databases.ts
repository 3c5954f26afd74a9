/** Databases as programs of earlier schema versions have left them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Database as PostgresDatabase } from '../../src/database/database.ts'
import { IDENTITY_SCHEMA, migrate } from '../../src/database/migrate.ts'
import { MIGRATIONS as DOCUMENTS } from '../../src/documents/sqlite/migrations.generated.ts'
import { MIGRATIONS_TABLE } from '../../src/storage/control/database.ts'
import { MIGRATIONS as CONTROL } from '../../src/storage/migrations.generated.ts'
import { sha256, sha256Hex } from '../../src/system/digests.ts'
import { openSharedDatabase } from '../../src/system/own-databases.ts'
import { Secret } from '../../src/value/secret.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../product-roots.ts'

/** Migrates an empty database to the first `versions` of the identity schema. */
export async function earlierIdentity(url: string, versions: number): Promise<void> {
  const database = new PostgresDatabase({ url: new Secret(url), connectionsMax: 1 })
  const migrations = IDENTITY_SCHEMA.migrations.slice(0, versions)
  await migrate(database, 1n, { ...IDENTITY_SCHEMA, migrations })
  await database.close()
}

/** Writes the control database of `makeRoot` at the schema version. */
export function earlierControl(root: string, versions: number): void {
  const database = emptyDatabase(join(root, 'control.db'))
  database.run(MIGRATIONS_TABLE)
  for (const { version, name, sql } of CONTROL.slice(0, versions)) {
    database.run(sql)
    const record = 'insert into control_migrations values (?1, ?2, ?3, 1)'
    database.run(record, [version, name, sha256Hex(sql)])
  }
  database.run(
    `insert into environment (singleton, project_id, environment_id, revision, configuration,
                              configuration_revision, lifecycle, created_at, updated_at)
     values (1, ?1, ?2, 0, '{}', 0, 'active', 1, 1)`,
    [PROJECT_ID, ENVIRONMENT_ID],
  )
  database.close()
}

/** Writes a document file of the first schema version with this number of documents. */
export function earlierDocuments(root: string, documents: number): void {
  const database = emptyDatabase(join(root, 'documents.db'))
  const { sql, name } = DOCUMENTS[0]!
  database.run(sql)
  database.run('insert into migrations values (1, ?1, ?2)', [name, sha256(sql)])
  database.run('pragma user_version = 1')
  database.run(`pragma application_id = ${0x73766364}`)
  for (let i = 1; i <= documents; i++) {
    const id = `notes_${String(i).padStart(26, '0')}`
    const insert = `insert into documents (row, id, sequence, created_at_micros, text)
                    values (?1, ?2, ?1, 0, '{}')`
    database.run(insert, [i, id])
  }
  database.run('update store set latest_sequence = ?1', [documents])
  database.close()
}

function emptyDatabase(path: string): ReturnType<typeof openSharedDatabase> {
  writeFileSync(path, '', { mode: 0o600 })
  return openSharedDatabase(path)
}
