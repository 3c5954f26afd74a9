/**
 * The tables of stored files, of scheduled work, of Crons and of migrations. They belong to the
 * server: every Environment has them, regardless of what its Releases declare. Authors read
 * metadata of files and delete it; they reach scheduled work through `ctx.scheduler` alone.
 */
import type { DocumentStore, IndexDefinition } from '../../documents/store.ts'
import {
  FILE_DOCUMENTS,
  MULTIPART_DOCUMENTS,
  PART_DOCUMENTS,
  UPLOAD_DOCUMENTS,
} from '../../value/files/files.ts'
import type { TableManifest } from '../../value/manifest.ts'
import { MIGRATION_DOCUMENTS } from '../../value/migrations/migrations.ts'
import { CRON_DOCUMENTS, SCHEDULED_DOCUMENTS } from '../../value/scheduling/scheduled-work.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import { ensureIndexes, indexDefinitions } from './physical-indexes.ts'
import { type PreparedTable, prepareTable } from './prepared-tables.ts'

/**
 * Metadata of a file. `key` is null for a file that no object key names. Files that were stored
 * before S3 clients could have neither `etag` nor `headers`; those of one part, and those that were
 * completed before `partSizes` existed, have none.
 */
const FILES: TableManifest = {
  name: FILE_DOCUMENTS,
  fields: {
    bucket: { type: 'string' },
    key: { type: 'nullable', inner: { type: 'string' } },
    contentType: { type: 'string' },
    size: { type: 'int64' },
    sha256: { type: 'string' },
    uploadId: { type: 'nullable', inner: { type: 'id', table: UPLOAD_DOCUMENTS } },
    etag: { type: 'optional', inner: { type: 'string' } },
    headers: { type: 'optional', inner: { type: 'record', values: { type: 'string' } } },
    partSizes: { type: 'optional', inner: { type: 'string' } },
    multipartId: { type: 'optional', inner: { type: 'string' } },
    checksums: { type: 'optional', inner: { type: 'record', values: { type: 'string' } } },
  },
  indexes: [
    { name: 'byContent', fields: ['sha256'], unique: false },
    { name: 'byKey', fields: ['bucket', 'key'], unique: false },
    { name: 'byUpload', fields: ['uploadId'], unique: false },
  ],
}

/**
 * Used upload grants, until they expire. Their digest and key ID are empty; releases before 0.5.0
 * stored unused ones with both.
 */
const UPLOADS: TableManifest = {
  name: UPLOAD_DOCUMENTS,
  fields: {
    digest: { type: 'bytes' },
    keyId: { type: 'string' },
    bucket: { type: 'string' },
    key: { type: 'nullable', inner: { type: 'string' } },
    contentType: { type: 'string' },
    maximumBytes: { type: 'int64' },
    releaseId: { type: 'string' },
    expiresAt: { type: 'timestamp' },
  },
  indexes: [{ name: 'byExpiry', fields: ['expiresAt'], unique: false }],
}

/** Multipart uploads of S3 clients. `bytes` is the size of all parts. */
const MULTIPARTS: TableManifest = {
  name: MULTIPART_DOCUMENTS,
  fields: {
    bucket: { type: 'string' },
    key: { type: 'string' },
    contentType: { type: 'string' },
    headers: { type: 'record', values: { type: 'string' } },
    bytes: { type: 'int64' },
    isOpen: { type: 'boolean' },
    checksum: { type: 'optional', inner: { type: 'string' } },
    isComposite: { type: 'optional', inner: { type: 'boolean' } },
  },
  indexes: [{ name: 'byKey', fields: ['bucket', 'key'], unique: false }],
}

/** Parts of multipart uploads. */
const PARTS: TableManifest = {
  name: PART_DOCUMENTS,
  fields: {
    upload: { type: 'id', table: MULTIPART_DOCUMENTS },
    number: { type: 'int64' },
    size: { type: 'int64' },
    sha256: { type: 'string' },
    etag: { type: 'string' },
    checksums: { type: 'optional', inner: { type: 'record', values: { type: 'string' } } },
  },
  indexes: [
    { name: 'byContent', fields: ['sha256'], unique: false },
    { name: 'byNumber', fields: ['upload', 'number'], unique: false },
  ],
}

/**
 * Scheduled work. `finishedAt` is null until the work has succeeded, failed or was canceled.
 * Deliveries of other services have `mount`, `route` and what else tells which request they were;
 * `hasFailed` is present while their state is `failed`. `rerunBy` is the ID of the request that
 * made failed work run again last. Work with `keepsResult` has its `result` once it has succeeded,
 * unless that is too long.
 */
const SCHEDULED: TableManifest = {
  name: SCHEDULED_DOCUMENTS,
  fields: {
    function: { type: 'string' },
    kind: { type: 'string' },
    releaseId: { type: 'string' },
    arguments: { type: 'string' },
    source: { type: 'string' },
    cron: { type: 'nullable', inner: { type: 'string' } },
    mount: { type: 'optional', inner: { type: 'string' } },
    route: { type: 'optional', inner: { type: 'string' } },
    event: { type: 'optional', inner: { type: 'string' } },
    method: { type: 'optional', inner: { type: 'string' } },
    path: { type: 'optional', inner: { type: 'string' } },
    bytes: { type: 'optional', inner: { type: 'int64' } },
    hasFailed: { type: 'optional', inner: { type: 'boolean' } },
    lastErrorMessage: { type: 'optional', inner: { type: 'string' } },
    state: { type: 'string' },
    dueAt: { type: 'timestamp' },
    attempts: { type: 'int64' },
    lastErrorCode: { type: 'nullable', inner: { type: 'string' } },
    finishedAt: { type: 'nullable', inner: { type: 'timestamp' } },
    rerunBy: { type: 'optional', inner: { type: 'string' } },
    keepsResult: { type: 'optional', inner: { type: 'boolean' } },
    result: { type: 'optional', inner: { type: 'string' } },
  },
  indexes: [
    { name: 'byDue', fields: ['state', 'dueAt'], unique: false },
    { name: 'byFinish', fields: ['finishedAt'], unique: false },
    // No field of it changes in work that does not fail, so it costs a delivery one entry.
    { name: 'byMount', fields: ['mount', 'hasFailed'], unique: false },
  ],
}

/** States of the Crons that are, or were just, in force. */
const CRONS: TableManifest = {
  name: CRON_DOCUMENTS,
  fields: {
    name: { type: 'string' },
    basis: { type: 'string' },
    nextAt: { type: 'nullable', inner: { type: 'timestamp' } },
    lastDueAt: { type: 'nullable', inner: { type: 'timestamp' } },
    lastRunAt: { type: 'nullable', inner: { type: 'timestamp' } },
    scheduledId: { type: 'nullable', inner: { type: 'string' } },
    queued: { type: 'int64' },
  },
  indexes: [{ name: 'byName', fields: ['name'], unique: true }],
}

/**
 * The progress of migrations: one row for each name and digest, in whichever Release it runs.
 * `cursor` is the key of the last document that was passed, in base64url; `version` counts writes.
 */
const MIGRATIONS: TableManifest = {
  name: MIGRATION_DOCUMENTS,
  fields: {
    name: { type: 'string' },
    digest: { type: 'string' },
    table: { type: 'string' },
    releaseId: { type: 'string' },
    state: { type: 'string' },
    version: { type: 'int64' },
    cursor: { type: 'nullable', inner: { type: 'string' } },
    processed: { type: 'int64' },
    changed: { type: 'int64' },
    failed: { type: 'int64' },
    lastErrorCode: { type: 'nullable', inner: { type: 'string' } },
    lastDocumentId: { type: 'nullable', inner: { type: 'string' } },
    startedAt: { type: 'timestamp' },
    finishedAt: { type: 'nullable', inner: { type: 'timestamp' } },
  },
  indexes: [{ name: 'byName', fields: ['name', 'digest'], unique: true }],
}

export const SYSTEM_INDEXES: readonly IndexDefinition[] = indexDefinitions([
  FILES,
  UPLOADS,
  MULTIPARTS,
  PARTS,
  SCHEDULED,
  CRONS,
  MIGRATIONS,
])

/** Prepared system tables by name. */
export interface SystemTables {
  /** The tables that transactions of the server read and write. */
  readonly all: ReadonlyMap<string, PreparedTable>
  /** The tables that Functions of every Release see. */
  readonly shared: ReadonlyMap<string, PreparedTable>
}

/** Prepares the system tables once, at their first use. A failure is repeated by the next use. */
export class SystemTablesLoader {
  readonly #store: DocumentStore
  readonly #committer: ReadableCommits
  #tables: SystemTables | null = null
  #loading: Promise<SystemTables> | null = null

  constructor(store: DocumentStore, committer: ReadableCommits) {
    this.#store = store
    this.#committer = committer
  }

  /** The tables; null before they are prepared. */
  get tables(): SystemTables | null {
    return this.#tables
  }

  load(): Promise<SystemTables> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = null
      throw error
    })
    return this.#loading
  }

  async #load(): Promise<SystemTables> {
    const physical = await ensureIndexes(this.#store, this.#committer, SYSTEM_INDEXES)
    const files = prepareTable(FILES, physical, null)
    const others = [UPLOADS, MULTIPARTS, PARTS, SCHEDULED, CRONS, MIGRATIONS].map((manifest) =>
      prepareTable(manifest, physical, null),
    )
    this.#tables = {
      all: new Map([files, ...others].map((table) => [table.manifest.name, table])),
      shared: new Map([[FILES.name, files]]),
    }
    return this.#tables
  }
}
