/** Promotion: binds a Channel to a validated Release under the binding that its caller expected. */
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import {
  type Channel,
  findChannel,
  insertBinding,
  listChannels,
} from '../storage/control/channels.ts'
import type { ControlReader, ControlTx } from '../storage/control/database.ts'
import { advanceRevision } from '../storage/control/environment.ts'
import { findRelease } from '../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../value/ids.ts'
import type { Product } from './product.ts'

export const CHANNELS_MAX = 1_000
/** Form of a Channel's name. */
export const CHANNEL_NAME = /^[a-z][a-z0-9-]{0,62}$/

export interface Promoted extends Channel {
  readonly serving: 'pending' | 'converged'
}

export interface PromoteInput {
  readonly channel: string
  readonly releaseId: ReleaseId
  /** What the Channel must be bound to; null asks for nothing. */
  readonly expectedReleaseId: 'empty' | ReleaseId | null
  readonly requestId: RequestId
}

/**
 * Throws PRODUCT_CAS_CONFLICT where the binding is not the expected one, PRODUCT_NOT_FOUND for an
 * unknown Release, PRODUCT_RELEASE_RETIRED and PRODUCT_STATE_CONFLICT for one that may not serve.
 * A Channel that is bound to the Release already stays as it is.
 */
export function promote(
  app: Pick<Product, 'system' | 'root' | 'audit' | 'serving'>,
  actor: Actor,
  input: PromoteInput,
): Promoted {
  const channel = app.root.control.transaction((tx) => {
    const current = findChannel(tx, input.channel)
    const { expectedReleaseId: expected } = input
    if (expected !== null && (current?.releaseId ?? 'empty') !== expected) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `channel ${input.channel}` })
    }
    requireServable(tx, input.releaseId)
    if (current?.releaseId === input.releaseId) return current
    if (current === null && listChannels(tx).length >= CHANNELS_MAX) {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CHANNELS_MAX} Channels` })
    }
    return insert(app, tx, actor, { ...input, current })
  })
  app.serving.bind(channel)
  app.audit.deliver()
  return { ...channel, serving: app.serving.state(channel.name) }
}

function requireServable(reader: ControlReader, releaseId: ReleaseId): void {
  const release = findRelease(reader, releaseId)
  if (release === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: releaseId })
  if (release.state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
  if (release.state !== 'validated') {
    throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${releaseId} is ${release.state}` })
  }
}

function insert(
  { system, audit }: Pick<Product, 'system' | 'audit'>,
  tx: ControlTx,
  actor: Actor,
  input: PromoteInput & { readonly current: Channel | null },
): Channel {
  const channel: Channel = {
    name: input.channel,
    releaseId: input.releaseId,
    previousReleaseId: input.current?.releaseId ?? null,
    revision: (input.current?.revision ?? 0n) + 1n,
    changedAtMicros: system.nowMicros(),
  }
  insertBinding(tx, { ...channel, operatorId: actor.operatorId })
  advanceRevision(tx)
  audit.append(tx, actor, {
    operation: 'product.channel.promote',
    subject: `${channel.name}:${channel.releaseId}`,
    requestId: input.requestId,
  })
  return channel
}
