/** The state that a Release must have to be bound to a Channel or a serving policy. */

import { Fault } from '../../errors/fault.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findRelease } from '../../storage/control/releases.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { releaseNotFound, stateConflict } from '../resource-faults.ts'

/**
 * Throws PRODUCT_NOT_FOUND for an unknown Release, PRODUCT_RELEASE_RETIRED, and
 * PRODUCT_STATE_CONFLICT for a Release that is not validated. `path` is the member that names it.
 */
export function requireServable(
  reader: ControlReader,
  releaseId: ReleaseId,
  path = 'releaseId',
): void {
  const release = findRelease(reader, releaseId)
  if (release === null) throw releaseNotFound(releaseId, path)
  if (release.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
  if (release.state !== 'validated') {
    const rule = `a validated Release; this one is ${release.state}`
    throw stateConflict({ path, rule, detail: `${releaseId} is ${release.state}` })
  }
}
