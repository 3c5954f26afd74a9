/** A server whose backups are copied into roots of `svc dev`. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CopyRequest } from '../../src/client/development/workspace-tools.ts'
import { copyBackup, type DevelopmentCopy } from '../../src/dev/copies/development-copy.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import type { DocumentStore, DocumentWrite } from '../../src/documents/store.ts'
import { openProductRoot } from '../../src/storage/root.ts'
import { realSystem } from '../../src/system/system.ts'
import type { TableManifest, WorkspaceDescription } from '../../src/value/manifest.ts'
import type { BackupRecord } from '../../src/wire/files/backups.ts'
import { documentId, EVERYTHING } from '../documents/store-fixtures.ts'
import { makeRoot } from '../product-roots.ts'
import { type BackedUpServer, backedUpServer, write } from './backed-up-server.ts'

const STRING = { type: 'string' } as const
export const PEOPLE: TableManifest = {
  name: 'people',
  fields: {
    email: STRING,
    name: STRING,
    photo: { type: 'optional', inner: { type: 'bytes' } },
    tags: { type: 'optional', inner: { type: 'array', items: STRING } },
    home: { type: 'optional', inner: { type: 'object', fields: { street: STRING } } },
  },
  indexes: [],
}
/** Replaces every field of people. */
export const REDACTION = {
  tables: { people: { email: 'fake', name: 'hash', photo: 'fake', tags: 'fake', home: 'fake' } },
}

export interface CopyOptions {
  readonly redaction?: object | null
  readonly workspace?: Partial<WorkspaceDescription>
  readonly request?: Partial<DevelopmentCopy['request']>
  readonly onProgress?: DevelopmentCopy['onProgress']
  readonly signal?: AbortSignal
  readonly requireUsable?: DevelopmentCopy['requireUsable']
}

export class CopiedServer {
  readonly server: BackedUpServer
  /** The file that opens its backups. */
  readonly identity: string
  readonly #roots: string[] = []

  private constructor(server: BackedUpServer) {
    this.server = server
    this.identity = join(server.parts.directory, 'backup.key')
    writeFileSync(this.identity, `${server.parts.secret}\n`, { mode: 0o600 })
  }

  /** Opens a server that may have documents of people and of orders. */
  static async open(): Promise<CopiedServer> {
    const server = await backedUpServer('sqlite')
    await server.parts.store.setFieldShapes(
      new Map([
        ['people', { email: null, name: null, photo: null, tags: null, home: { street: null } }],
        ['orders', { total: null }],
      ]),
    )
    return new CopiedServer(server)
  }

  async dispose(): Promise<void> {
    await this.server.dispose()
    for (const root of this.#roots) rmSync(root, { recursive: true })
  }

  /** Names the newest state of its backups, which is not redacted. */
  get request(): CopyRequest {
    return {
      from: join(this.server.parts.directory, 'target'),
      identities: [this.identity],
      environmentId: null,
      historyId: null,
      redaction: null,
    }
  }

  newRoot(): string {
    const root = makeRoot()
    this.#roots.push(root)
    return root
  }

  /** Returns a root that was opened before. */
  async servedRoot(): Promise<string> {
    const root = this.newRoot()
    const opened = await openProductRoot(root, realSystem())
    opened.close()
    return root
  }

  copy(rootPath: string, options: CopyOptions = {}) {
    const { redaction = null, workspace, request, onProgress = () => undefined } = options
    const { signal = new AbortController().signal, requireUsable = () => undefined } = options
    return copyBackup({
      rootPath,
      request: {
        ...this.request,
        redaction: redaction === null ? null : Buffer.from(JSON.stringify(redaction)),
        ...request,
      },
      variables: {},
      system: realSystem(),
      describe: async () => ({ functions: [], tables: [PEOPLE], ...workspace }),
      onProgress,
      signal,
      requireUsable,
    })
  }
}

export async function withStore<T>(
  root: string,
  use: (store: DocumentStore) => Promise<T>,
): Promise<T> {
  const store = await openSqliteDocuments(join(root, 'documents.db'), { mayBeNew: false })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Returns the IDs of the documents of a root, and their fields as stored JSON. */
export function documentsOf(root: string): Promise<(readonly [string, unknown])[]> {
  return withStore(root, async (store) => {
    const all = { rowsMax: 1_000, textUnitsMax: EVERYTHING }
    const page = await store.versions({ after: '', snapshot: store.latestSequence, ...all })
    return page.rows.map(({ id, text }) => [id, JSON.parse(text!)] as const)
  })
}

/** Returns the write of a document of people. */
export const person = (number: number, fields: object): DocumentWrite =>
  write('people', number, JSON.stringify({ email: 'a@example.com', name: 'Ana', ...fields }))

/** Returns the record of a later version of a document of people. */
export const change = (number: number, sequence: number, text: string | null): BackupRecord => ({
  t: 'document',
  id: documentId('people', number),
  createdAtMicros: String(number),
  sequence,
  text,
})
