/** A server of an earlier version, whose modes run in the process of the test. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Database as PostgresDatabase } from '../../src/database/database.ts'
import { runServer } from '../../src/server/modes.ts'
import { Secret } from '../../src/value/secret.ts'
import { freshDatabase } from '../databases/postgres.ts'
import { makeRoot } from '../product-roots.ts'
import { earlierControl, earlierDocuments, earlierIdentity } from './earlier-databases.ts'

export interface EarlierServer {
  readonly root: string
  readonly database: PostgresDatabase
  readonly url: string
  readonly settings: Readonly<Record<string, string>>
  run(...args: string[]): Promise<{ exit: number; out: string; err: string }>
  /** Names, content and times of all files of the root. */
  files(): unknown[]
}

/** A root without a control database, and an empty identity database. */
export async function newServer(environment: Record<string, string> = {}): Promise<EarlierServer> {
  const root = makeRoot()
  const state = mkdtempSync(join(tmpdir(), 'svc-upgrade-'))
  const { url, drop } = await freshDatabase()
  const database = new PostgresDatabase({ url: new Secret(url), connectionsMax: 1 })
  onTestFinished(async () => {
    await database.close()
    await drop()
    for (const directory of [root, state]) rmSync(directory, { recursive: true, force: true })
  })
  const settings = {
    SERVICE_IDENTITY_DATABASE_URL: url,
    SERVICE_PLATFORM_IDENTITY_PEPPER: randomBytes(32).toString('base64url'),
    SERVICE_STATE_DIRECTORY: state,
    SERVICE_PRODUCT_ROOT: root,
    ...environment,
  }
  return {
    root,
    database,
    url,
    settings,
    async run(...args) {
      let [out, err] = ['', '']
      const add = (text: string) => {
        out += text
      }
      const fail = (text: string) => {
        err += text
      }
      const io = { out: add, err: fail, errIsTerminal: false }
      return { exit: await runServer(args, settings, io), out, err }
    },
    files: () =>
      readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => {
        const stats = statSync(join(root, name))
        const content = stats.isFile() ? readFileSync(join(root, name), 'base64') : ''
        return [name, stats.mtimeMs, content]
      }),
  }
}

/** Schema versions that a program has left. */
const EARLIER = { identity: 3, control: 3 }

/** A server with 40 documents of the first schema version. */
export async function earlierServer(
  environment: Record<string, string> = {},
  { identity, control } = EARLIER,
): Promise<EarlierServer> {
  const found = await newServer(environment)
  await earlierIdentity(found.url, identity)
  earlierControl(found.root, control)
  earlierDocuments(found.root, 40)
  return found
}
