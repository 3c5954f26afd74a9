/** Binds a Channel to a Release: the steps that promotion and rollback share. */
import type { RecordedActor } from '../../identity/actor.ts'
import { type Channel, insertBinding } from '../../storage/control/channels.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { RequiredMigrationsPorts } from '../compatibility/required-migrations.ts'
import type { StoredDocumentsPorts } from '../compatibility/stored-documents.ts'
import type { ChangePorts } from '../ports.ts'
import type { Serving } from '../serving/serving.ts'

export interface BindingPorts extends ChangePorts, StoredDocumentsPorts {
  readonly engine: StoredDocumentsPorts['engine'] & RequiredMigrationsPorts['engine']
  readonly serving: Pick<Serving, 'bind' | 'state'>
}

export interface BoundChannel extends Channel {
  readonly serving: 'pending' | 'converged'
}

export interface Binding {
  readonly verb: 'promote' | 'rollback'
  readonly channel: string
  readonly releaseId: ReleaseId
  /** The binding that this one replaces; null for a new Channel. */
  readonly current: Channel | null
  readonly requestId: RequestId
}

/** Inserts the binding, its revision and its audit record in the caller's transaction. */
export function appendBinding(
  { system, audit }: Pick<BindingPorts, 'system' | 'audit'>,
  tx: ControlTx,
  actor: RecordedActor,
  binding: Binding,
): Channel {
  const channel: Channel = {
    name: binding.channel,
    releaseId: binding.releaseId,
    previousReleaseId: binding.current?.releaseId ?? null,
    revision: (binding.current?.revision ?? 0n) + 1n,
    changedAtMicros: system.nowMicros(),
  }
  insertBinding(tx, { ...channel, operatorId: actor.operatorId })
  advanceRevision(tx)
  audit.append(tx, actor, {
    operation: `product.channel.${binding.verb}`,
    subject: `${channel.name}:${channel.releaseId}`,
    requestId: binding.requestId,
  })
  return channel
}

/** Starts serving a committed binding and the delivery of its audit record. */
export function serveBinding(
  { serving, audit }: Pick<BindingPorts, 'serving' | 'audit'>,
  channel: Channel,
): BoundChannel {
  serving.bind(channel)
  audit.deliver()
  return { ...channel, serving: serving.state(channel.name) }
}
