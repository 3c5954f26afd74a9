/** Opens the identity of an installation for the modes that restore the access of owners. */
import { type Identity, openIdentity } from '../identity/identity.ts'
import { parseSettings } from '../settings/settings.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { prepareMigrations } from './upgrade/preparation.ts'

interface ModeInput {
  readonly mode: 'recover-bootstrap' | 'recover-owner'
  readonly environment: ProcessEnvironment
  readonly io: ServerIo
}

/** Runs `use` with the identity and closes it. Throws what the settings and `use` throw. */
export async function withIdentity<T>(
  { mode, environment, io }: ModeInput,
  use: (identity: Identity) => Promise<T>,
): Promise<T> {
  const configuration = parseSettings(environment, mode)
  const system = realSystem()
  const log = createLog({ system, sink: io.err, level: 'warn' })
  const identity = openIdentity({
    databaseUrl: configuration.identityDatabase.url,
    pepper: configuration.identityPepper,
    stateDirectory: configuration.stateDirectory,
    system,
    log,
  })
  try {
    await prepareMigrations({ configuration, identity: identity.database, system, log })
    return await use(identity)
  } finally {
    await identity.close()
  }
}
