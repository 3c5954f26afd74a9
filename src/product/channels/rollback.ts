/** Rollback: binds a Channel to a Release that it was bound to before. */

import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { type Channel, channelHadRelease, findChannel } from '../../storage/control/channels.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import { requireMigrated } from '../compatibility/required-migrations.ts'
import { requireStoredDocumentsFit } from '../compatibility/stored-documents.ts'
import { requireServable } from '../releases/servable.ts'
import { channelNotFound, stateConflict } from '../resource-faults.ts'
import { appendBinding, type BindingPorts, type BoundChannel, serveBinding } from './bindings.ts'

export interface RollbackInput {
  readonly channel: string
  readonly targetReleaseId: ReleaseId
  readonly expectedReleaseId: ReleaseId
  readonly requestId: RequestId
}

/**
 * Binds the Channel and starts to serve the Release. Throws PRODUCT_NOT_FOUND for an unknown
 * Channel or Release, PRODUCT_CAS_CONFLICT if the binding is not the expected one,
 * PRODUCT_STATE_CONFLICT for a target that is bound now or never was, PRODUCT_RELEASE_RETIRED, and
 * what requireMigrated and requireStoredDocumentsFit throw. Tables that the target lacks keep their
 * documents, which its code cannot reach.
 */
export async function rollback(
  ports: BindingPorts,
  actor: Actor,
  input: RollbackInput,
): Promise<BoundChannel> {
  const { channel, targetReleaseId: releaseId, requestId } = input
  ports.root.control.read((reader) => requireEligible(reader, input))
  await requireMigrated(ports, releaseId)
  await requireStoredDocumentsFit(ports, releaseId)
  const restored = ports.root.control.transaction((tx) => {
    const current = requireEligible(tx, input)
    const binding = { verb: 'rollback', channel, releaseId, current, requestId } as const
    return appendBinding(ports, tx, actor, binding)
  })
  return serveBinding(ports, restored)
}

function requireEligible(
  reader: ControlReader,
  { channel: name, targetReleaseId, expectedReleaseId }: RollbackInput,
): Channel {
  const channel = findChannel(reader, name)
  if (channel === null) throw channelNotFound(name)
  if (channel.releaseId !== expectedReleaseId) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `channel ${name}` })
  }
  requireServable(reader, targetReleaseId, 'targetReleaseId')
  const wasBound = channelHadRelease(reader, name, targetReleaseId)
  if (!wasBound || targetReleaseId === channel.releaseId) {
    throw stateConflict({
      path: 'targetReleaseId',
      rule: 'an earlier Release of the history of the Channel',
      detail: `${targetReleaseId} is not in the history`,
    })
  }
  return channel
}
