/** Backups of the stopped server of an installation, and the servers that are made of them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeBase } from '../../src/backups/base/base-backup.ts'
import { makeIdentity, recipientOf } from '../../src/backups/format/age-files.ts'
import { DirectoryTarget } from '../../src/backups/targets/directory.ts'
import type { BackupTarget } from '../../src/backups/targets/targets.ts'
import { Database } from '../../src/database/database.ts'
import { openSqliteDocuments } from '../../src/documents/sqlite/stores.ts'
import { FileBlobs } from '../../src/storage/blobs/file-blobs.ts'
import { findHistory } from '../../src/storage/control/environment.ts'
import { openProductRoot } from '../../src/storage/root.ts'
import { realSystem } from '../../src/system/system.ts'
import { Secret } from '../../src/value/secret.ts'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import type { Application } from '../application.ts'
import { argv } from '../argv.ts'
import { type Environment, type Result, run, SERVER } from '../harness.ts'

export interface MadeBackup {
  /** The directory of the backup. */
  readonly directory: string
  /** The file with the identity that opens it. */
  readonly identity: string
}

/** Makes a base of the stopped server, as the server would. */
export async function backUp(app: Application, to?: BackupTarget): Promise<MadeBackup> {
  const { directory, productRoot, environment } = app.installation
  const secret = await makeIdentity()
  const identityFile = join(directory, 'backup.key')
  const head = `# created: today\n# public key: ${await recipientOf(secret)}\n`
  writeFileSync(identityFile, `${head}${secret}\n`, { mode: 0o600 })
  const path = join(directory, 'backups')
  mkdirSync(path, { recursive: true })
  const url = readFileSync(environment.SERVICE_IDENTITY_DATABASE_URL_FILE!, 'utf8').trim()
  const root = await openProductRoot(productRoot, realSystem())
  const store = await openSqliteDocuments(join(productRoot, 'documents.db'), { mayBeNew: false })
  const identity = new Database({ url: new Secret(url) })
  try {
    await makeBase({
      server: {
        system: realSystem(),
        store,
        holdSnapshot: () => ({ sequence: store.latestSequence, release: () => undefined }),
        holdFiles: () => () => undefined,
        root,
        blobs: await FileBlobs.open({ directory: join(productRoot, 'files'), freeFloorBytes: 0 }),
        identity,
      },
      target: to ?? new DirectoryTarget(path),
      recipients: [await recipientOf(secret)],
      historyId: root.control.read(findHistory)!,
    })
  } finally {
    await identity.close()
    await store.close()
    root.close()
  }
  return { directory: path, identity: identityFile }
}

/** The places of a server that is made of a backup. */
export interface NewServer {
  readonly root: string
  readonly identityDatabase: TestDatabase
  /** Null for a file in the root. */
  readonly documentsDatabase: TestDatabase | null
  /** The settings that differ from those of the installation. */
  readonly environment: Environment
  dispose(): Promise<void>
}

export async function newServer(
  app: Application,
  { name, documents }: { readonly name: string; readonly documents: 'sqlite' | 'postgres' },
): Promise<NewServer> {
  const { directory } = app.installation
  const root = join(directory, `root-${name}`)
  const state = join(directory, `state-${name}`)
  mkdirSync(state, { mode: 0o700 })
  const secret = (file: string, content: string) => {
    const path = join(directory, `${file}-${name}`)
    writeFileSync(path, content, { mode: 0o600 })
    return path
  }
  const identityDatabase = await freshDatabase()
  const documentsDatabase = documents === 'sqlite' ? null : await freshDatabase()
  return {
    root,
    identityDatabase,
    documentsDatabase,
    environment: {
      SERVICE_PRODUCT_ROOT: root,
      SERVICE_STATE_DIRECTORY: state,
      SERVICE_IDENTITY_DATABASE_URL_FILE: secret('database-url', identityDatabase.url),
      ...(documentsDatabase && {
        SERVICE_PLATFORM_DATABASE_URL_FILE: secret('documents-url', documentsDatabase.url),
      }),
    },
    dispose: async () => {
      await identityDatabase.drop()
      await documentsDatabase?.drop()
    },
  }
}

export interface RestoreCommand {
  readonly from: string
  readonly identity: string
  readonly to: NewServer
  readonly args?: readonly string[]
  readonly environment?: Environment
}

/** Runs `svc-server restore` with the settings of the new server alone. */
export function restore({ from, identity, to, args = [], environment = {} }: RestoreCommand) {
  const command = argv`${SERVER} restore --from ${from} --identity ${identity} --root ${to.root}`
  const { SERVICE_PRODUCT_ROOT: _, ...settings } = to.environment
  const result: Promise<Result> = run(argv`${command} ${args}`, {
    environment: { ...settings, ...environment },
  })
  return result
}
