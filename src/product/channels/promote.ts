/**
 * Promotion and rollback: bind a Channel to a validated Release under the binding that its caller
 * expected.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  type Channel,
  channelHadRelease,
  findChannel,
  insertBinding,
  listChannels,
} from '../../storage/control/channels.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import { advanceRevision, findEnvironment } from '../../storage/control/environment.ts'
import { findRelease } from '../../storage/control/releases.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import { requireFitting } from '../compatibility/stored-documents.ts'
import type { Product } from '../product.ts'

type App = Pick<
  Product,
  'system' | 'root' | 'audit' | 'releases' | 'engine' | 'validations' | 'serving'
>

export const CHANNELS_MAX = 1_000
/** Form of a Channel's name. */

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
 * PRODUCT_RELEASE_RETIRED and PRODUCT_STATE_CONFLICT for one that may not serve, and what
 * requireFitting throws. A Channel that is bound to the Release already stays as it is.
 */
export async function promote(app: App, actor: Actor, input: PromoteInput): Promise<Promoted> {
  const bound = app.root.control.read((reader) => requirePromotable(reader, input))
  if (bound?.releaseId !== input.releaseId) await requireFitting(app, input.releaseId)
  const channel = app.root.control.transaction((tx) => {
    const current = requirePromotable(tx, input)
    if (current?.releaseId === input.releaseId) return current
    return insert(app, tx, actor, { ...input, current, verb: 'promote' })
  })
  app.serving.bind(channel)
  app.audit.deliver()
  return { ...channel, serving: app.serving.state(channel.name) }
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
    throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CHANNELS_MAX} Channels` })
  }
  return current
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
 * PRODUCT_RELEASE_RETIRED, and what requireFitting throws. Tables that the target does not have are
 * out of its reach, and stay as they are.
 */
export async function rollback(
  app: App,
  actor: Actor,
  { channel: name, targetReleaseId, expectedReleaseId, requestId }: RollbackInput,
): Promise<Promoted> {
  const eligible = (reader: ControlReader): Channel =>
    requireEligible(reader, { name, targetReleaseId, expectedReleaseId })
  app.root.control.read(eligible)
  await requireFitting(app, targetReleaseId)
  const channel = app.root.control.transaction((tx) => {
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
