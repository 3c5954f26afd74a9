/** `svc-server migrate`: brings each database to this version's schema. Safe to repeat. */

import { migrateDocuments } from '../documents/postgres/schema.ts'
import { Fault } from '../errors/fault.ts'
import { openIdentity } from '../identity/identity.ts'
import { type PepperKind, parseSettings } from '../settings/settings.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { migrateRoot } from './upgrade/migrate-root.ts'
import { prepareMigrations } from './upgrade/preparation.ts'
import { type DatabaseName, type Survey, surveyServer } from './upgrade/survey.ts'

const REPLACED: Readonly<Record<PepperKind, string>> = {
  identity:
    'The identity pepper is replaced: every session and every pending invitation is revoked.\n',
  'oidc-subject':
    'The subject pepper is replaced: no identity link of this provider is resolved from now on.\n',
}

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'migrate')
  const system = realSystem()
  const log = createLog({ system, sink: io.err, level: 'warn' })
  const survey = await surveyServer(configuration)
  requireUsable(survey)
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    oidc: configuration.oidc,
    workloads: configuration.workloads,
    system,
    log,
  })
  try {
    await prepareMigrations({ configuration, identity: identity.database, system, log })
    const migration = await identity.migrate(configuration.confirmedPepperChanges)
    io.out(report('identity', migration))
    for (const kind of migration.replacedPeppers) io.out(REPLACED[kind])
    const { product } = configuration
    const database = product?.database ?? null
    if (database !== null) {
      const result = await migrateDocuments(database.url, system.nowMicros())
      io.out(report('documents', result))
    }
    if (product !== null) {
      const { root } = product
      await migrateRoot(root, survey.databases, {
        system,
        onMigrated: ({ name, found, target }) => io.out(report(name, { from: found, to: target })),
      })
    }
    return 0
  } finally {
    await identity.close()
  }
}

/**
 * Throws before anything changes: the problem of a database, or SERVER_PRODUCT_ROOT_LOCKED where
 * the root has pending migrations and a server uses it.
 */
function requireUsable({ databases, running }: Survey): void {
  for (const { problem } of databases) if (problem !== null) throw problem
  const inRoot = databases.filter(({ store, pending }) => store === 'sqlite' && pending.length > 0)
  if (inRoot.length > 0 && running === true) throw new Fault('SERVER_PRODUCT_ROOT_LOCKED')
}

const TITLES: Readonly<Record<DatabaseName, string>> = {
  identity: 'identity database',
  control: 'control database',
  documents: 'document database',
  logs: 'database of the log',
}

function report(name: DatabaseName, { from, to }: { from: number; to: number }): string {
  return from === to
    ? `The ${TITLES[name]} is at schema version ${to} already.\n`
    : `The ${TITLES[name]} went from schema version ${from} to ${to}.\n`
}
