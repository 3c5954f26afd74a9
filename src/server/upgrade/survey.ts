/**
 * Finds out what this version would change in the databases of a server, stopped or running, and
 * changes nothing.
 */
import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Database as PostgresDatabase } from '../../database/database.ts'
import { IDENTITY_SCHEMA, type Schema } from '../../database/migrate.ts'
import { surveySchema } from '../../database/schema-survey.ts'
import { DOCUMENT_SCHEMA, documentDatabase } from '../../documents/postgres/schema.ts'
import { verifyVersion } from '../../documents/sqlite/databases.ts'
import { MIGRATIONS as SQLITE_DOCUMENTS } from '../../documents/sqlite/migrations.generated.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { ServerSettings } from '../../settings/settings.ts'
import { verifyMigrations } from '../../storage/control/database.ts'
import { invalidRoot } from '../../storage/files.ts'
import { isRootLocked } from '../../storage/lock.ts'
import { NewerLogError, verifyLogVersion } from '../../storage/logs/log-migrations.ts'
import { MIGRATIONS as LOGS } from '../../storage/logs/migrations.generated.ts'
import { MIGRATIONS as CONTROL } from '../../storage/migrations.generated.ts'
import { CONTROL_FILE, DOCUMENTS_FILE, LOCK_FILE, LOGS_FILE } from '../../storage/root.ts'
import { type DatabaseImage, readDatabaseImage } from '../../system/database-images.ts'
import { isOneWay, type Migration } from '../../value/databases/migrations.ts'

export type DatabaseName = 'identity' | 'control' | 'documents' | 'logs'

export interface DatabaseSurvey {
  readonly name: DatabaseName
  readonly store: 'postgresql' | 'sqlite'
  /** The recorded schema version; 0 where there is no database yet. */
  readonly found: number
  readonly target: number
  readonly pending: readonly Migration[]
  /** True if a program of the version found cannot use the database afterwards. */
  readonly oneWay: boolean
  /** Number of document versions; 0 for other databases, and where it is unknown. */
  readonly documents: number
  /** Bytes that the migrations need beside the database while they run. */
  readonly neededBytes: number
  /** The fault that this version would not start with; null if there is none. */
  readonly problem: Fault | null
}

export interface Survey {
  readonly databases: readonly DatabaseSurvey[]
  /** True if a process owns the Product root; null without a root. */
  readonly running: boolean | null
  /** Free bytes on the disk of the Product root; null without a root. */
  readonly freeBytes: number | null
}

/** Facts that are read from a database. */
interface Found {
  readonly found: number
  readonly bytes: number
  readonly documents: number
}

const NOTHING: Found = { found: 0, bytes: 0, documents: 0 }

type Databases = Pick<ServerSettings, 'identityDatabase' | 'product'>

/** Reads the databases that the settings name. Each problem stands with its database. */
export async function surveyServer(configuration: Databases): Promise<Survey> {
  const { identityDatabase, product } = configuration
  const identity = new PostgresDatabase({ url: identityDatabase.url, connectionsMax: 1 })
  try {
    const databases = await surveyDatabases(configuration, identity)
    if (product === null) return { databases, running: null, freeBytes: null }
    const { root } = product
    const running = isRootLocked(join(root, LOCK_FILE))
    return { databases, running, freeBytes: freeBytes(root) }
  } finally {
    await identity.close()
  }
}

/** Reads the databases, and whether their migrations are one way. `identity` is null for none. */
export async function surveyDatabases(
  { product }: Pick<Databases, 'product'>,
  identity: PostgresDatabase | null,
): Promise<readonly DatabaseSurvey[]> {
  const surveys: DatabaseSurvey[] = []
  if (identity !== null) surveys.push(await surveyPostgres('identity', IDENTITY_SCHEMA, identity))
  if (product === null) return surveys
  const inRoot = surveyRoot(product.root)
  if (product.database === null) return [...surveys, ...inRoot]
  const { url } = product.database
  const database = documentDatabase({ url, connectionsMax: 1, onIdleLoss: () => undefined })
  try {
    const documents = await surveyPostgres('documents', DOCUMENT_SCHEMA, database)
    // The order is that of documents in the root.
    return [...surveys, ...inRoot.map((each) => (each.name === 'documents' ? documents : each))]
  } finally {
    await database.close()
  }
}

/** Reads the databases in a Product root. */
export function surveyRoot(root: string): readonly DatabaseSurvey[] {
  return [
    surveySqlite('control', join(root, CONTROL_FILE), CONTROL, ({ database }) =>
      hasTable(database, 'control_migrations')
        ? verifyMigrations({ all: (sql) => database.query<never, []>(sql).all() })
        : 0,
    ),
    surveySqlite('documents', join(root, DOCUMENTS_FILE), SQLITE_DOCUMENTS, (image) =>
      image.userVersion > SQLITE_DOCUMENTS.length
        ? verifyVersion(image.database)
        : image.userVersion,
    ),
    surveySqlite('logs', join(root, LOGS_FILE), LOGS, (image) =>
      image.userVersion > LOGS.length ? verifyLogVersion(image.database) : image.userVersion,
    ),
  ]
}

async function surveyPostgres(
  name: DatabaseName,
  schema: Schema,
  database: PostgresDatabase,
): Promise<DatabaseSurvey> {
  const parts = { name, store: 'postgresql', migrations: schema.migrations } as const
  try {
    return described(parts, await surveySchema(database, schema))
  } catch (error) {
    if (!isFault(error)) throw error
    return described(parts, NOTHING, error)
  }
}

function surveySqlite(
  name: DatabaseName,
  path: string,
  migrations: readonly Migration[],
  versionOf: (image: DatabaseImage) => number,
): DatabaseSurvey {
  const parts = { name, store: 'sqlite', migrations } as const
  let image: DatabaseImage | null = null
  try {
    image = readDatabaseImage(path)
    if (image === null) return described(parts, NOTHING)
    const found = versionOf(image)
    const documents = name === 'documents' ? countDocuments(image) : 0
    return described(parts, { found, bytes: image.bytes, documents })
  } catch (cause) {
    return described(parts, NOTHING, problemOf(cause, path))
  } finally {
    image?.database.close()
  }
}

function problemOf(cause: unknown, path: string): Fault {
  if (cause instanceof NewerLogError) return new Fault(cause.code, { detail: cause.message })
  return isFault(cause) ? cause : invalidRoot(`${path} cannot be read`, cause)
}

function hasTable(database: DatabaseImage['database'], name: string): boolean {
  const table = 'select 1 from sqlite_schema where type = ? and name = ?'
  return database.query<object, [string, string]>(table).get('table', name) !== null
}

/** Rows ascend from 1 and pruned ones are not used again, so this is an upper bound. */
function countDocuments({ database }: DatabaseImage): number {
  try {
    const newest = 'select coalesce(max(row), 0) as row from documents'
    return database.query<{ row: number }, []>(newest).get()?.row ?? 0
  } catch {
    // Nothing was copied from the log of a large file yet, or a checkpoint runs.
    return 0
  }
}

function described(
  {
    name,
    store,
    migrations,
  }: Pick<DatabaseSurvey, 'name' | 'store'> & {
    readonly migrations: readonly Migration[]
  },
  { found, bytes, documents }: Found,
  problem: Fault | null = null,
): DatabaseSurvey {
  const pending = problem === null && found > 0 ? migrations.slice(found) : []
  const converts = pending.some(({ documentMicros }) => documentMicros !== undefined)
  return {
    name,
    store,
    found,
    target: Math.max(found, migrations.length),
    pending,
    oneWay: problem === null && isOneWay(migrations, found),
    documents,
    // The converted copy, and the log or the compacted copy that is made of it.
    neededBytes: converts ? 2 * bytes : 0,
    problem,
  }
}

function freeBytes(root: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(root)
    return bavail * bsize
  } catch {
    return null
  }
}
