/** `svc-server recover-bootstrap`: replaces a lost first-owner code while there is no owner. */

import { openIdentity } from '../identity/identity.ts'
import { parseSettings } from '../settings/settings.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'recover-bootstrap')
  const system = realSystem()
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    system,
    log: createLog({ system, sink: io.err, level: 'warn' }),
  })
  try {
    const path = await identity.recoverBootstrap()
    io.out('Every earlier first-owner code is revoked. The new one is valid for 24 hours, in\n')
    io.out(`  ${path}\n`)
    return 0
  } finally {
    await identity.close()
  }
}
