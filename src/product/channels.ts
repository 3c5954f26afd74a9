/**
 * Promotion and rollback: bind a Channel to a validated Release under the binding that its caller
 * expected.
 */
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import {
  type Channel,
  channelHadRelease,
  findChannel,
  insertBinding,
  listChannels,
} from '../storage/control/channels.ts'
import type { ControlReader, ControlTx } from '../storage/control/database.ts'
import { advanceRevision, findEnvironment } from '../storage/control/environment.ts'
import { findRelease } from '../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../value/ids.ts'
import type { Product } from './product.ts'
import { compatibilityChecks, incompatible, isFailed } from './release-checks.ts'

export const CHANNELS_MAX = 1_000
/** Form of a Channel's name. */
export const CHANNEL_NAME = /^[a-z][a-z0-9-]{0,62}$/

export interface Promoted extends Channel {
  readonly serving: 'pending' | 'converged'
}

export interface PromoteInput {
  readonly channel: string
  readonly releaseId: ReleaseId
  /** What the Channel must be bound to; null asks for nothing, which a protected one refuses. */
  readonly expectedReleaseId: 'empty' | ReleaseId | null
  readonly requestId: RequestId
}

/**
 * Throws PRODUCT_CAS_CONFLICT where the binding is not the expected one, PRODUCT_INVALID where none
 * is expected in a protected Environment, PRODUCT_NOT_FOUND for an unknown Release,
 * PRODUCT_RELEASE_RETIRED and PRODUCT_STATE_CONFLICT for one that may not serve. A Channel that is
 * bound to the Release already stays as it is.
 */
export function promote(
  app: Pick<Product, 'system' | 'root' | 'audit' | 'serving'>,
  actor: Actor,
  input: PromoteInput,
): Promoted {
  const channel = app.root.control.transaction((tx) => {
    const current = findChannel(tx, input.channel)
    const { expectedReleaseId: expected } = input
    if (expected === null) requireUnprotected(tx)
    if (expected !== null && (current?.releaseId ?? 'empty') !== expected) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `channel ${input.channel}` })
    }
    requireServable(tx, input.releaseId)
    if (current?.releaseId === input.releaseId) return current
    if (current === null && listChannels(tx).length >= CHANNELS_MAX) {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CHANNELS_MAX} Channels` })
    }
    return insert(app, tx, actor, { ...input, current, verb: 'promote' })
  })
  app.serving.bind(channel)
  app.audit.deliver()
  return { ...channel, serving: app.serving.state(channel.name) }
}

export interface RollbackInput {
  readonly channel: string
  readonly targetReleaseId: ReleaseId
  readonly expectedReleaseId: ReleaseId
  readonly requestId: RequestId
}

/**
 * Back to a Release that the Channel was bound to before. Throws PRODUCT_NOT_FOUND for an unknown
 * Channel or Release, PRODUCT_CAS_CONFLICT where the binding is not the expected one,
 * PRODUCT_STATE_CONFLICT for a target that is not in the history or is bound now,
 * PRODUCT_RELEASE_RETIRED, and PRODUCT_INCOMPATIBLE where the target may not read what the current
 * Release stored.
 */
export async function rollback(
  app: Pick<Product, 'system' | 'root' | 'audit' | 'releases' | 'serving'>,
  actor: Actor,
  { channel: name, targetReleaseId, expectedReleaseId, requestId }: RollbackInput,
): Promise<Promoted> {
  const eligible = (reader: ControlReader): Channel =>
    requireEligible(reader, { name, targetReleaseId, expectedReleaseId })
  app.root.control.read(eligible)
  const [target, current] = await Promise.all([
    app.releases.load(targetReleaseId),
    app.releases.load(expectedReleaseId),
  ])
  const failed = compatibilityChecks(target, current).filter(isFailed)
  if (failed.length > 0) throw incompatible(failed)
  const channel = app.root.control.transaction((tx) => {
    // The two Releases that were compared are still the two: neither of them ever changes.
    const bound = eligible(tx)
    const step = { channel: name, releaseId: targetReleaseId, current: bound, requestId }
    return insert(app, tx, actor, { ...step, verb: 'rollback' })
  })
  app.serving.bind(channel)
  app.audit.deliver()
  return { ...channel, serving: app.serving.state(channel.name) }
}

function requireEligible(
  reader: ControlReader,
  {
    name,
    targetReleaseId,
    expectedReleaseId,
  }: Pick<RollbackInput, 'targetReleaseId' | 'expectedReleaseId'> & { readonly name: string },
): Channel {
  const channel = findChannel(reader, name)
  if (channel === null) throw new Fault('PRODUCT_NOT_FOUND', { detail: `channel ${name}` })
  if (channel.releaseId !== expectedReleaseId) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `channel ${name}` })
  }
  requireServable(reader, targetReleaseId)
  const earlier = channelHadRelease(reader, name, targetReleaseId)
  if (!earlier || targetReleaseId === channel.releaseId) {
    throw new Fault('PRODUCT_STATE_CONFLICT', {
      detail: `${targetReleaseId} is not in the history`,
    })
  }
  return channel
}

/** Nobody overwrites unseen what another operator did to a protected Environment. */
function requireUnprotected(reader: ControlReader): void {
  if (findEnvironment(reader)!.configuration.protection === 'none') return
  throw new Fault('PRODUCT_INVALID', {
    violations: [{ path: 'expectedReleaseId', rule: 'given, as the Environment is protected' }],
  })
}

/** Throws PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED and PRODUCT_STATE_CONFLICT. */
export function requireServable(reader: ControlReader, releaseId: ReleaseId): void {
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
  input: Pick<PromoteInput, 'channel' | 'releaseId' | 'requestId'> & {
    readonly current: Channel | null
    readonly verb: 'promote' | 'rollback'
  },
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
    operation: `product.channel.${input.verb}`,
    subject: `${channel.name}:${channel.releaseId}`,
    requestId: input.requestId,
  })
  return channel
}
