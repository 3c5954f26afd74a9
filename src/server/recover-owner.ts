/** `svc-server recover-owner`: lets an owner in again whose every device is lost. */

import { openIdentity } from '../identity/identity.ts'
import { parseSettings } from '../settings/settings.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'recover-owner')
  const system = realSystem()
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    system,
    log: createLog({ system, sink: io.err, level: 'warn' }),
  })
  try {
    const path = await identity.recoverOwner()
    io.out('Every earlier owner invitation of this kind is revoked. The new one is valid for\n')
    io.out(`30 minutes and makes a new owner of the installation, in\n  ${path}\n`)
    return 0
  } finally {
    await identity.close()
  }
}
