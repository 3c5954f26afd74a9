/** `svc-server rotate-keys`: adds a new key to a Product root that no server has open. */

import { type KeyRotation, rotateKeys } from '../product/environments/key-rotation.ts'
import { parseSettings } from '../settings/settings.ts'
import { fault } from '../settings/sources.ts'
import { keyringFiles } from '../storage/keyring-files.ts'
import { openProductRoot } from '../storage/root.ts'
import { realSystem } from '../system/system.ts'
import { createLog } from '../telemetry/log.ts'
import type { ProcessEnvironment, ServerIo } from './io.ts'
import { prepareMigrations } from './upgrade/preparation.ts'

export async function run(environment: ProcessEnvironment, io: ServerIo): Promise<number> {
  const configuration = parseSettings(environment, 'rotate-keys')
  const { product } = configuration
  if (product === null) {
    const rule = 'the Product root whose keys are rotated'
    throw fault('SERVER_CONFIGURATION_MISSING', 'SERVICE_PRODUCT_ROOT', rule)
  }
  const system = realSystem()
  const log = createLog({ system, sink: io.err, level: 'warn' })
  const migrates = ['control'] as const
  await prepareMigrations({ configuration, identity: null, migrates, system, log })
  const root = await openProductRoot(product.root, system)
  try {
    report(io, rotateKeys({ system, root, files: keyringFiles(product.root) }))
    return 0
  } finally {
    root.close()
  }
}

function report({ out }: ServerIo, { activeId, resealed, removedIds, kept }: KeyRotation): void {
  out(`The new key ${activeId} is active; ${resealed} secrets are sealed under it.\n`)
  for (const id of removedIds) out(`Removed ${id}: it was no longer in use.\n`)
  for (const { keyId, uses } of kept) {
    const { credentials, operations } = uses
    const reasons = `${credentials} Application credentials, ${operations} Operation IDs`
    out(`Kept ${keyId}, for what was made with it: ${reasons}, guests of the last day.\n`)
  }
  out('Back the Product root up again: older backups have the older keyring.\n')
}
