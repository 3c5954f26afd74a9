/**
 * Opens the documents of the served Environment: in its root, or in PostgreSQL. The root records
 * which, so that a lost setting or an empty database never looks like an Environment without data.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgresDocuments } from '../documents/postgres/stores.ts'
import { openSqliteDocuments } from '../documents/sqlite/stores.ts'
import type { DocumentStore } from '../documents/store.ts'
import {
  type AcceptedLoss,
  DocumentsWatermark,
} from '../product/environments/documents-watermark.ts'
import type { DatabaseAddress } from '../settings/addresses.ts'
import { readDocumentsSequence } from '../storage/control/environment.ts'
import { hasReleases } from '../storage/control/releases.ts'
import { invalidRoot, isAbsentOrEmpty } from '../storage/files.ts'
import { DOCUMENTS_FILE, DOCUMENTS_POSTGRES_FILE, type ProductRoot } from '../storage/root.ts'
import { FileFailure, readSecretFile, writeFileAtomic } from '../system/files.ts'
import type { MemoryPlan } from '../system/memory/memory-plan.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

export interface DocumentsOptions {
  readonly rootPath: string
  readonly environmentId: string
  /** True if a Release was ever published or a document written. */
  readonly mayHoldDocuments: boolean
  /** Null keeps the documents in the root. */
  readonly database: DatabaseAddress | null
  readonly system: System
  readonly log: Logger
  readonly metrics: Metrics
  /** True if application processes read the documents; absent for false. */
  readonly isShared?: boolean
  readonly memory?: MemoryPlan | undefined
}

export interface RootDocumentsOptions
  extends Pick<
    DocumentsOptions,
    'database' | 'system' | 'log' | 'metrics' | 'isShared' | 'memory'
  > {
  readonly root: ProductRoot
  /** Null accepts no loss of documents. */
  readonly acceptedLoss: AcceptedLoss | null
}

export interface RootDocuments {
  readonly store: DocumentStore
  /** Closes the store and records its last sequence. */
  close(): Promise<void>
}

/**
 * Opens the documents of a root and records their durable sequence in its control database. Throws
 * what `openDocuments` throws, and SERVER_DOCUMENTS_OLDER if the documents have lost commits.
 */
export async function openRootDocuments(options: RootDocumentsOptions): Promise<RootDocuments> {
  const { root, database, acceptedLoss, isShared = false, memory, system, log, metrics } = options
  const rootPath = root.path
  const { environmentId } = root.descriptor
  const mayHoldDocuments = root.control.read(
    (reader) => hasReleases(reader) || readDocumentsSequence(reader) > 0,
  )
  const which = { rootPath, environmentId, mayHoldDocuments, database }
  const store = await openDocuments({ ...which, isShared, memory, system, log, metrics })
  try {
    const watermark = new DocumentsWatermark({ system, log, root, store })
    watermark.requireNewest(acceptedLoss)
    watermark.start()
    const close = async (): Promise<void> => {
      await store.close()
      await watermark.stop()
    }
    return { store, close }
  } catch (error) {
    await store.close()
    throw error
  }
}

const ID = /^[A-Za-z0-9_-]{22}$/

/**
 * Opens the store. Throws SERVER_PRODUCT_ROOT_INVALID if the root records another store or its
 * documents are lost, SERVER_DOCUMENT_DATABASE_UNAVAILABLE, UNAVAILABLE or PRODUCT_CORRUPT.
 */
export async function openDocuments(options: DocumentsOptions): Promise<DocumentStore> {
  const { rootPath, environmentId, mayHoldDocuments, database, system, log, metrics } = options
  const { isShared = false, memory } = options
  const databaseId = readDatabaseId(rootPath)
  const file = join(rootPath, DOCUMENTS_FILE)
  if (mayHoldDocuments && databaseId === null && isAbsentOrEmpty(file)) {
    throw invalidRoot(
      `${DOCUMENTS_FILE} (in PostgreSQL: ${DOCUMENTS_POSTGRES_FILE}) is missing or empty, but ` +
        'Releases or documents were written: restore it, with its log (-wal) where there is one, ' +
        'from the backup that the rest is from',
    )
  }
  requireConfigured({ file, databaseId, database })
  if (database === null) {
    return openSqliteDocuments(file, { mayBeNew: !mayHoldDocuments, isShared, memory })
  }
  const store = await openPostgresDocuments({
    url: database.url,
    environmentId,
    databaseId,
    system,
    memory,
    onProblem: (event, detail) => {
      if (event === 'connection_lost') metrics.counters.documentConnectionsLost.add()
      const level = event === 'failed' ? 'error' : 'warn'
      log[level](`documents.${event}`, { detail })
    },
  })
  if (databaseId === null) {
    writeFileAtomic(join(rootPath, DOCUMENTS_POSTGRES_FILE), `${store.databaseId}\n`)
  }
  return store
}

/**
 * Throws SERVER_PRODUCT_ROOT_INVALID as `openDocuments` does if the root records another store than
 * the settings name. Opens nothing.
 */
export function checkDocuments({
  rootPath,
  database,
}: Pick<DocumentsOptions, 'rootPath' | 'database'>): void {
  const file = join(rootPath, DOCUMENTS_FILE)
  requireConfigured({ file, databaseId: readDatabaseId(rootPath), database })
}

function requireConfigured({
  file,
  databaseId,
  database,
}: {
  readonly file: string
  readonly databaseId: string | null
  readonly database: DatabaseAddress | null
}): void {
  if (database === null && databaseId !== null) {
    throw invalidRoot('its documents are in PostgreSQL: set SERVICE_PLATFORM_DATABASE_URL')
  }
  if (database !== null && existsSync(file)) {
    throw invalidRoot(`its documents are in ${DOCUMENTS_FILE}: unset SERVICE_PLATFORM_DATABASE_URL`)
  }
}

/**
 * Returns the ID of the PostgreSQL database that a root records; null for none. Throws
 * SERVER_PRODUCT_ROOT_INVALID.
 */
export function readDatabaseId(rootPath: string): string | null {
  try {
    const bytes = readSecretFile(join(rootPath, DOCUMENTS_POSTGRES_FILE), { bytesMax: 64 })
    const id = new TextDecoder().decode(bytes).trimEnd()
    if (ID.test(id)) return id
  } catch (error) {
    if (error instanceof FileFailure && error.reason === 'missing') return null
  }
  throw invalidRoot(`${DOCUMENTS_POSTGRES_FILE} cannot be read, or holds no database ID`)
}
