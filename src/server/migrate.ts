/** `svc-server migrate`: brings the identity database to this version's schema. Safe to repeat. */
import { parseConfiguration } from '../config/configuration.ts'
import { openIdentity } from '../identity/identity.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { Environment, ServerIo } from './io.ts'

export async function run(environment: Environment, io: ServerIo): Promise<number> {
  const configuration = parseConfiguration(environment, 'migrate')
  const system = realSystem()
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    system,
    log: createLog({ system, sink: io.err, level: 'warn' }),
  })
  try {
    const { from, to } = await identity.migrate()
    io.out(
      from === to
        ? `The identity database is at schema version ${to} already.\n`
        : `The identity database went from schema version ${from} to ${to}.\n`,
    )
    return 0
  } finally {
    await identity.close()
  }
}
