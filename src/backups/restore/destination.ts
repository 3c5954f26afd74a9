/** The empty places that a restore writes into. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../database/database.ts'
import { hasIdentityTables, removeIdentityTables } from '../../database/identity/restored-rows.ts'
import { openPostgresLoader } from '../../documents/postgres/loader.ts'
import {
  documentDatabase,
  hasDocumentTables,
  removeDocumentSchema,
} from '../../documents/postgres/schema.ts'
import { openPostgresDocuments } from '../../documents/postgres/stores.ts'
import { openSqliteLoader } from '../../documents/sqlite/loader.ts'
import { openSqliteDocuments } from '../../documents/sqlite/stores.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { checkOwnDirectory, invalidRoot } from '../../storage/files.ts'
import { DOCUMENTS_FILE, DOCUMENTS_POSTGRES_FILE } from '../../storage/root.ts'
import { writeFileAtomic } from '../../system/files.ts'
import type { System } from '../../system/system.ts'
import type { EnvironmentId } from '../../value/ids.ts'
import type { Secret } from '../../value/secret.ts'
import type { DocumentsDestination } from './restored-documents.ts'
import type { UndoStack } from './undo-stack.ts'

export interface Destination {
  /** The Product root: a directory that is empty or does not exist. */
  readonly root: string
  /** Null restores no identity, for a rehearsal without a database. */
  readonly identity: Database | null
  /** The PostgreSQL database of the documents; null for a file in the root. */
  readonly documents: Secret | null
  readonly system: System
}

/** Writes nothing. Raises RESTORE_NOT_EMPTY, and faults of unusable places. */
export async function requireEmpty({ root, identity, documents }: Destination): Promise<void> {
  if (existsSync(root)) {
    checkOwnDirectory(root)
    if (readdirSync(root).length > 0) throw notEmpty(root)
  }
  if (identity !== null && (await hasIdentityTables(identity)))
    throw notEmpty('the identity database')
  if (documents !== null && (await withDocuments(documents, hasDocumentTables))) {
    throw notEmpty('the database of the documents')
  }
}

/** Creates the root where it does not exist. Throws SERVER_PRODUCT_ROOT_UNAVAILABLE. */
export function prepareRoot({ root }: Destination, undo: UndoStack): void {
  const isNew = !existsSync(root)
  const remove = () => {
    const paths = isNew ? [root] : readdirSync(root).map((name) => join(root, name))
    for (const path of paths) rmSync(path, { recursive: true, force: true })
  }
  undo.add({ what: root, undo: remove })
  try {
    if (isNew) mkdirSync(root, { mode: 0o700 })
  } catch (cause) {
    throw invalidRoot(`${root} cannot be created`, cause)
  }
}

export function identityUndo(identity: Database, undo: UndoStack): void {
  const what = 'the tables of the identity database'
  undo.add({ what, undo: () => removeIdentityTables(identity) })
}

/** The documents of an Environment in their place. */
export function documentsDestination(
  { root, documents, system }: Destination,
  environmentId: EnvironmentId,
  undo: UndoStack,
): DocumentsDestination {
  if (documents === null) {
    const path = join(root, DOCUMENTS_FILE)
    return {
      load: (state) => openSqliteLoader(path, state),
      open: () => openSqliteDocuments(path, { mayBeNew: false }),
    }
  }
  const shared = { url: documents, environmentId, system, onProblem: () => undefined }
  let databaseId: string | null = null
  return {
    async load(state) {
      const remove = () => withDocuments(documents, removeDocumentSchema)
      undo.add({ what: 'the schema svc_documents', undo: remove })
      const loader = await openPostgresLoader(shared, state)
      databaseId = loader.databaseId
      writeFileAtomic(join(root, DOCUMENTS_POSTGRES_FILE), `${databaseId}\n`)
      return loader
    },
    open: () => openPostgresDocuments({ ...shared, databaseId }),
  }
}

async function withDocuments<T>(url: Secret, use: (database: Database) => Promise<T>): Promise<T> {
  const database = documentDatabase({ url, connectionsMax: 1, onIdleLoss: () => undefined })
  try {
    return await use(database)
  } catch (error) {
    if (!isFault(error)) throw error
    throw new Fault('SERVER_DOCUMENT_DATABASE_UNAVAILABLE', { detail: error.detail, cause: error })
  } finally {
    await database.close()
  }
}

function notEmpty(what: string): Fault {
  return new Fault('RESTORE_NOT_EMPTY', { detail: `${what} has content` })
}
