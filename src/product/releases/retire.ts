/** Retirement: makes an unused Release permanently unservable and removes its bytes. */
import type { Engine } from '../../engine/engine.ts'
import { Fault } from '../../errors/fault.ts'
import type { RecordedAuthor } from '../../identity/actor.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import {
  findRelease,
  listReleaseUses,
  listUnusedReleases,
  markReleaseRetired,
} from '../../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { ChangePorts } from '../ports.ts'
import { releaseNotFound } from '../resource-faults.ts'
import type { ArtifactCollection } from './artifact-collection.ts'
import type { EngineCollection } from './engine-collection.ts'
import type { ReleaseCache } from './release-cache.ts'

/**
 * The newest Releases, used or not, that a publication does not retire.
 * @limit Workspaces and Releases: newest Releases that are kept although nothing uses them
 */
export const RELEASES_KEPT = 100
/** Maximum number of uses that a PRODUCT_STATE_CONFLICT lists. */
const USES_MAX = 16

/** The parts that a publication needs to retire Releases in its own transaction. */
export interface UnusedRetirementPorts extends Pick<ChangePorts, 'system' | 'audit'> {
  /** Returns whether a Channel serves the Release, even if only until its replacement is ready. */
  readonly serving: { isServed(releaseId: ReleaseId): boolean }
  readonly engine: {
    readonly scheduler: Pick<Engine['scheduler'], 'pendingOf'>
    readonly migrations: Pick<Engine['migrations'], 'unfinishedOf'>
  }
}

export interface RetirementPorts extends UnusedRetirementPorts, ChangePorts {
  readonly releases: Pick<ReleaseCache, 'forget'>
  readonly collection: Pick<ArtifactCollection, 'collect'>
  readonly engineCollection: Pick<EngineCollection, 'collect'>
}

export interface RetireInput {
  readonly releaseId: ReleaseId
  readonly requestId: RequestId
}

/**
 * Retires a Release. Throws PRODUCT_NOT_FOUND, and PRODUCT_STATE_CONFLICT for a Release in use,
 * with its uses. Retiring a retired Release again changes nothing.
 */
export function retire(
  ports: RetirementPorts,
  actor: RecordedAuthor,
  { releaseId, requestId }: RetireInput,
): void {
  ports.root.control.transaction((tx) => {
    if (findRelease(tx, releaseId) === null) throw releaseNotFound(releaseId)
    const uses = listReleaseUses(tx, releaseId, USES_MAX)
    if (uses.length === 0 && ports.serving.isServed(releaseId)) {
      uses.push('served until its replacement is ready')
    }
    const pending = ports.engine.scheduler.pendingOf(releaseId)
    if (pending !== 0) uses.push(pendingUse(pending))
    const migrations = ports.engine.migrations.unfinishedOf(releaseId)
    if (migrations !== 0) uses.push(migrationUse(migrations))
    if (uses.length > 0) {
      throw new Fault('PRODUCT_STATE_CONFLICT', {
        detail: `${releaseId} is in use`,
        violations: uses.map((use) => ({ path: 'releaseId', rule: `not ${use}` })),
      })
    }
    if (markRetired(ports, tx, actor, { releaseId, requestId })) advanceRevision(tx)
  })
  ports.releases.forget(releaseId)
  ports.collection.collect()
  ports.engineCollection.collect()
  ports.audit.deliver()
}

/**
 * Retires unused Releases beyond the newest RELEASES_KEPT, in the transaction of a publication,
 * which advances the revision.
 */
export function retireUnused(
  ports: UnusedRetirementPorts,
  tx: ControlTx,
  actor: RecordedAuthor,
  requestId: RequestId,
): void {
  for (const releaseId of listUnusedReleases(tx, RELEASES_KEPT)) {
    const { scheduler, migrations } = ports.engine
    const isPinned =
      scheduler.pendingOf(releaseId) !== 0 || migrations.unfinishedOf(releaseId) !== 0
    if (isPinned || ports.serving.isServed(releaseId)) continue
    markRetired(ports, tx, actor, { releaseId, requestId })
  }
}

/**
 * Describes the scheduled work that uses a Release: work stays on its Release
 * (contract/management.md, States of Workspaces and Channels).
 */
function pendingUse(pending: number | null): string {
  if (pending === null) return 'checked before scheduled work is counted; try again in a moment'
  return `the Release of ${pending} unfinished pieces of scheduled work`
}

/** Describes the migrations that run the code of a Release. */
function migrationUse(unfinished: number | null): string {
  if (unfinished === null) return 'checked before migrations are read; try again in a moment'
  return `the Release of ${unfinished} unfinished migrations`
}

function markRetired(
  { system, audit }: Pick<ChangePorts, 'system' | 'audit'>,
  tx: ControlTx,
  actor: RecordedAuthor,
  { releaseId, requestId }: RetireInput,
): boolean {
  if (!markReleaseRetired(tx, releaseId, system.nowMicros())) return false
  audit.append(tx, actor, { operation: 'product.release.retire', subject: releaseId, requestId })
  return true
}
