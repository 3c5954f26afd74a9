/** `svc-server migrate`: brings each database to this version's schema. Safe to repeat. */

import { migrateDocuments } from '../documents/postgres/schema.ts'
import { openIdentity } from '../identity/identity.ts'
import { type PepperKind, parseSettings } from '../settings/settings.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

const REPLACED: Readonly<Record<PepperKind, string>> = {
  identity:
    'The identity pepper is replaced: every session and every pending invitation is revoked.\n',
  'oidc-subject':
    'The subject pepper is replaced: no identity link of this provider is resolved from now on.\n',
}

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'migrate')
  const system = realSystem()
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    oidc: configuration.oidc,
    workloads: configuration.workloads,
    system,
    log: createLog({ system, sink: io.err, level: 'warn' }),
  })
  try {
    const migration = await identity.migrate(configuration.confirmedPepperChanges)
    io.out(report('identity', migration))
    for (const kind of migration.replacedPeppers) io.out(REPLACED[kind])
    const documents = configuration.product?.database ?? null
    if (documents !== null) {
      io.out(report('document', await migrateDocuments(documents.url, system.nowMicros())))
    }
    return 0
  } finally {
    await identity.close()
  }
}

function report(name: string, { from, to }: { from: number; to: number }): string {
  return from === to
    ? `The ${name} database is at schema version ${to} already.\n`
    : `The ${name} database went from schema version ${from} to ${to}.\n`
}
