/**
 * The files of the quickstart: everything is in `.svc/` of the checkout, readable by this user
 * alone, with the decisions of the first start, which every later start repeats.
 */
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { realSystem } from '../../src/system/system.ts'
import { newPassword } from '../../testing/databases/cluster.ts'
import { isOpenToOthers, postgresAccount } from '../../testing/servers/binaries.ts'

export interface Paths {
  readonly home: string
  readonly database: string
  readonly state: string
  readonly productRoot: string
  readonly workspace: string
  readonly config: string
  readonly credentials: string
  readonly codeFile: string
  readonly secretKeyFile: string
  /** The target of backups. */
  readonly backups: string
  /** The key that opens the backups. */
  readonly backupKey: string
  readonly log: string
  /** Commands that the user can paste. */
  readonly commands: string
  readonly decisions: string
}

export interface KeyIds {
  readonly publicClientId: string
  readonly publicCredentialId: string
  /** Maximum scopes of the public client; absent for one of a version without Realtime. */
  readonly scopes?: string
}

/** The maximum scopes of clients that were created before the field existed. */
export const FIRST_SCOPES = 'query,mutation'

/** Values that must be the same at every start. */
export interface Decisions {
  version: 1
  databasePassword: string
  databasePort: number | null
  managementPort: number | null
  applicationPort: number | null
  /** Port of the page; absent until a version that serves the page has started. */
  pagePort?: number
  /** Null until they exist: the server accepts a new identifier only on the day it was made. */
  keys: KeyIds | null
  readonly channelOperationId: string
  readonly messageOperationId: string
  channelId: string | null
  /** The secret of the hook; absent for a Workspace of a version without hooks. */
  hookSecret?: string
  /** The recipient of backups; absent until a version that makes some has started. */
  backupRecipient?: string
}

/** Creates `home` if it does not exist. */
export function preparePaths(home: string): Paths {
  mkdirSync(home, { recursive: true })
  // If this user is root, PostgreSQL runs as another account, which may pass through the folder.
  chmodSync(home, postgresAccount().uid === undefined ? 0o700 : 0o711)
  const within = (name: string): string => join(home, name)
  for (const name of ['state', 'config', 'keys', 'backups']) {
    mkdirSync(within(name), { recursive: true, mode: 0o700 })
  }
  return {
    home,
    database: databaseFolder(home),
    state: within('state'),
    productRoot: within('product'),
    workspace: within('workspace'),
    config: within('config'),
    credentials: within('config/credentials-v1.json'),
    codeFile: within('state/bootstrap/initial-owner.code'),
    secretKeyFile: within('keys/confidential.key'),
    backups: within('backups'),
    backupKey: within('keys/backup.key'),
    log: within('server.log'),
    commands: within('commands.txt'),
    decisions: within('quickstart.json'),
  }
}

/** Returns the data directory. PostgreSQL as another account cannot reach one below /root. */
function databaseFolder(home: string): string {
  const folder = join(home, 'postgres')
  if (postgresAccount().uid === undefined || isOpenToOthers(home)) return folder
  const mark = createHash('sha256').update(home).digest('hex').slice(0, 12)
  const outside = join('/var/lib', `svc-quickstart-${mark}`)
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) {
    // `.svc` was removed for a new start: the folder that it linked to is not needed.
    rmSync(outside, { recursive: true, force: true })
    mkdirSync(outside, { mode: 0o711 })
    symlinkSync(join(outside, 'postgres'), folder)
  }
  return join(outside, 'postgres')
}

export function readDecisions(paths: Paths): Decisions {
  if (existsSync(paths.decisions)) return JSON.parse(readFileSync(paths.decisions, 'utf8'))
  const { ids } = realSystem()
  const decisions: Decisions = {
    version: 1,
    databasePassword: newPassword(),
    databasePort: null,
    managementPort: null,
    applicationPort: null,
    keys: null,
    channelOperationId: ids.make('opn'),
    messageOperationId: ids.make('opn'),
    channelId: null,
  }
  writeDecisions(paths, decisions)
  return decisions
}

export function writeDecisions(paths: Paths, decisions: Decisions): void {
  writePrivate(paths.decisions, `${JSON.stringify(decisions, null, 2)}\n`)
}

export function newKeyIds(): KeyIds {
  const { ids } = realSystem()
  return {
    publicClientId: ids.make('app'),
    publicCredentialId: ids.make('crd'),
    scopes: 'query,mutation,realtime',
  }
}

export function newOperationId(): string {
  return realSystem().ids.make('opn')
}

/** Writes a file of mode 0600 atomically. */
export function writePrivate(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, path)
}

/** Creates the identity pepper once: every stored credential depends on it. */
export function ensurePepper(path: string): void {
  if (!existsSync(path)) writePrivate(path, randomBytes(32).toString('base64url'))
}
