/** Opens an Identity on a migrated database of its own, with direct access to its tables. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type QueryResultRow } from 'pg'
import { Database } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import { MIGRATIONS } from '../src/database/migrations.generated.ts'
import { Fault } from '../src/errors/fault.ts'
import { type Identity, type IdentityOptions, openIdentity } from '../src/identity/identity.ts'
import { sha256Hex } from '../src/system/digests.ts'
import { TestSystem } from '../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../src/telemetry/log.ts'
import { encodeBase64Url } from '../src/value/base64url.ts'
import { Secret } from '../src/value/secret.ts'
import { freshDatabase, type Template } from './databases/postgres.ts'

const MIGRATED_AT = 1_700_000_000_000_000n

/** A database with the complete identity schema. */
export const IDENTITY_TEMPLATE: Template = {
  name: `identity-${sha256Hex(...MIGRATIONS.map((migration) => migration.sql))}`,
  async prepare(url) {
    const database = new Database({ url: new Secret(url) })
    try {
      await migrate(database, MIGRATED_AT)
    } finally {
      await database.close()
    }
  },
}

export const TEST_PEPPER = new Secret(encodeBase64Url(new Uint8Array(32).fill(7)))

export interface TestIdentity {
  readonly url: string
  readonly identity: Identity
  readonly system: TestSystem
  readonly log: MemoryLog
  readonly stateDirectory: string
  /** Path of the first-owner code. */
  readonly codePath: string
  /** Opens another server on this database; by default with the same state directory. */
  another(options?: {
    seed?: number
    stateDirectory?: string
    pepper?: Secret
    external?: ExternalOptions
    /** Another URL of the same database. */
    url?: string
  }): Identity
  sql<R extends QueryResultRow>(text: string, parameters?: readonly unknown[]): Promise<R[]>
  /** Audit operations, oldest first. */
  audit(): Promise<string[]>
  dispose(): Promise<void>
}

export type ExternalOptions = Pick<
  IdentityOptions,
  'oidc' | 'workloads' | 'managedSource' | 'providerNetwork'
>

export async function testIdentity(
  options: { empty?: boolean; external?: ExternalOptions } = {},
): Promise<TestIdentity> {
  const base = await freshDatabase(options.empty === true ? undefined : IDENTITY_TEMPLATE)
  const stateDirectory = mkdtempSync(join(tmpdir(), 'svc-state-'))
  const log = memoryLog()
  const client = new Client({ connectionString: base.url })
  client.on('error', () => undefined)
  await client.connect()
  const opened: Identity[] = []
  const system = new TestSystem()
  const open = (given: Parameters<TestIdentity['another']>[0] = {}) => {
    const identity = openIdentity({
      databaseUrl: new Secret(given.url ?? base.url),
      pepper: given.pepper ?? TEST_PEPPER,
      stateDirectory: given.stateDirectory ?? stateDirectory,
      // A system with another seed draws other codes; its clock shows the time of the first one.
      system: given.seed === undefined ? system : systemLike(system, given.seed),
      log: log.log,
      ...(given.external ?? options.external),
    })
    opened.push(identity)
    return identity
  }
  const sql = async <R extends QueryResultRow>(
    text: string,
    parameters: readonly unknown[] = [],
  ): Promise<R[]> => (await client.query<R>(text, [...parameters])).rows
  return {
    url: base.url,
    identity: open(),
    system,
    log,
    stateDirectory,
    codePath: join(stateDirectory, 'bootstrap', 'initial-owner.code'),
    another: (given = {}) => open({ seed: opened.length + 1, ...given }),
    sql,
    audit: async () => {
      const rows = await sql<{ operation: string }>(
        'select operation from service_platform_audit order by at_micros, audit_id',
      )
      return rows.map((row) => row.operation)
    },
    dispose: async () => {
      await client.end()
      await Promise.all(opened.map((identity) => identity.close()))
      await base.drop()
      rmSync(stateDirectory, { recursive: true, force: true })
    },
  }
}

function systemLike(system: TestSystem, seed: number): TestSystem {
  return new TestSystem({ millis: system.nowMillis(), seed })
}

/** Waits for `work` and returns the code of the Fault that it fails with; `none` if it succeeds. */
export async function rejectionCode(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return error instanceof Fault ? error.code : String(error)
  }
  return 'none'
}
