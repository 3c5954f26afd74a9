/** Promotion: binds a Channel to a validated Release if its binding is the one expected. */

import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { type Channel, findChannel, listChannels } from '../../storage/control/channels.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import { requireMigrated } from '../compatibility/required-migrations.ts'
import { requireStoredDocumentsFit } from '../compatibility/stored-documents.ts'
import { requireServable } from '../releases/servable.ts'
import { limitReached } from '../resource-faults.ts'
import { appendBinding, type BindingPorts, type BoundChannel, serveBinding } from './bindings.ts'

/**
 * Every status lists all of them, so this bounds its response.
 * @limit Workspaces and Releases: Channels of an Environment
 */
export const CHANNELS_MAX = 1_000

export interface PromoteInput {
  readonly channel: string
  readonly releaseId: ReleaseId
  /** The present binding; null accepts any. A protected Environment rejects null. */
  readonly expectedReleaseId: 'empty' | ReleaseId | null
  readonly requestId: RequestId
}

/**
 * Binds the Channel and starts to serve the Release. Throws PRODUCT_CAS_CONFLICT if the binding is
 * not the expected one, PRODUCT_INVALID if none is expected in a protected Environment,
 * PRODUCT_NOT_FOUND for an unknown Release, PRODUCT_RELEASE_RETIRED, PRODUCT_STATE_CONFLICT for a
 * Release that may not serve, and what requireMigrated and requireStoredDocumentsFit throw. A
 * Channel that is bound to the Release stays unchanged.
 */
export async function promote(
  ports: BindingPorts,
  actor: Actor,
  input: PromoteInput,
): Promise<BoundChannel> {
  const { channel, releaseId, requestId } = input
  // The check of stored documents may take long and holds no lock. So the cheap checks come first,
  // and are repeated in the transaction.
  const bound = ports.root.control.read((reader) => requirePromotable(reader, input))
  if (bound?.releaseId !== releaseId) {
    await requireMigrated(ports, releaseId)
    await requireStoredDocumentsFit(ports, releaseId)
  }
  const promoted = ports.root.control.transaction((tx) => {
    const current = requirePromotable(tx, input)
    if (current?.releaseId === releaseId) return current
    const binding = { verb: 'promote', channel, releaseId, current, requestId } as const
    return appendBinding(ports, tx, actor, binding)
  })
  return serveBinding(ports, promoted)
}

function requirePromotable(
  reader: ControlReader,
  { channel, releaseId, expectedReleaseId: expected }: PromoteInput,
): Channel | null {
  const current = findChannel(reader, channel)
  if (expected === null) requireUnprotected(reader)
  if (expected !== null && (current?.releaseId ?? 'empty') !== expected) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `channel ${channel}` })
  }
  requireServable(reader, releaseId)
  if (current === null && listChannels(reader).length >= CHANNELS_MAX) {
    throw limitReached('channel', CHANNELS_MAX, 'Channels')
  }
  return current
}

/**
 * Throws PRODUCT_INVALID in a protected Environment, where no operator may overwrite another
 * operator's change unseen.
 */
function requireUnprotected(reader: ControlReader): void {
  if (findEnvironment(reader)!.configuration.protection === 'none') return
  throw new Fault('PRODUCT_INVALID', {
    violations: [{ path: 'expectedReleaseId', rule: 'required, as the Environment is protected' }],
  })
}
