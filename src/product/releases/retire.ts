/** Retirement: a Release that nothing uses is given up for good, and its bytes with it. */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findRelease,
  listReleaseUses,
  listUnusedReleases,
  markReleaseRetired,
} from '../../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { Product } from '../product.ts'

/** The newest ones that are not retired stay, used or not. */
export const RELEASES_KEPT = 100
/** Of one Release that a refusal names. */
const USES_MAX = 16

type App = Pick<
  Product,
  'system' | 'root' | 'audit' | 'releases' | 'serving' | 'collection' | 'engineCollection'
>

export interface RetireInput {
  readonly releaseId: ReleaseId
  readonly requestId: RequestId
}

/**
 * Throws PRODUCT_NOT_FOUND, and PRODUCT_STATE_CONFLICT for a Release that is in use, with what uses
 * it. Retiring it again changes nothing.
 */
export function retire(app: App, actor: Actor, { releaseId, requestId }: RetireInput): void {
  app.root.control.transaction((tx) => {
    if (findRelease(tx, releaseId) === null) {
      throw new Fault('PRODUCT_NOT_FOUND', { detail: releaseId })
    }
    const uses = listReleaseUses(tx, releaseId, USES_MAX)
    if (uses.length === 0 && app.serving.isServed(releaseId)) {
      uses.push('served until what replaces it is ready')
    }
    if (uses.length > 0) {
      throw new Fault('PRODUCT_STATE_CONFLICT', {
        detail: `${releaseId} is in use`,
        violations: uses.map((use) => ({ path: 'releaseId', rule: `not ${use}` })),
      })
    }
    if (markRetired(app, tx, actor, { releaseId, requestId })) advanceRevision(tx)
  })
  app.releases.forget(releaseId)
  app.collection.collect()
  app.engineCollection.collect()
  app.audit.deliver()
}

/** In the transaction of a publication, whose revision counts for it. */
export function retireUnused(
  app: Pick<App, 'system' | 'audit' | 'serving'>,
  tx: ControlTx,
  actor: Actor,
  requestId: RequestId,
): void {
  for (const releaseId of listUnusedReleases(tx, RELEASES_KEPT)) {
    if (!app.serving.isServed(releaseId)) markRetired(app, tx, actor, { releaseId, requestId })
  }
}

function markRetired(
  { system, audit }: Pick<App, 'system' | 'audit'>,
  tx: ControlTx,
  actor: Actor,
  { releaseId, requestId }: RetireInput,
): boolean {
  if (!markReleaseRetired(tx, releaseId, system.nowMicros())) return false
  audit.append(tx, actor, { operation: 'product.release.retire', subject: releaseId, requestId })
  return true
}
