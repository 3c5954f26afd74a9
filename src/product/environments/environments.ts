/**
 * Desired and observed state of the Environment. Every change of configuration or lifecycle is one
 * revision and names the revision that it follows. Archiving only stops serving: Releases can still
 * be published and Channels promoted, and they serve once the Environment is restored.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  advanceRevision,
  type Environment,
  type EnvironmentConfiguration,
  findEnvironment,
  updateEnvironment,
} from '../../storage/control/environment.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import type { EnvironmentChanged } from '../../wire/environment.ts'
import { type Applied, applyOnce } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { stateConflict } from '../resource-faults.ts'
import type { Serving } from '../serving/serving.ts'
import type { Lifecycle } from './lifecycle.ts'

/** Stored as JSON with its idempotency record, so revisions and times are decimal text. */
export type EnvironmentState = Omit<EnvironmentChanged, 'version' | 'operation'>

/** A change of the Environment; `create` is the first one after `svc init`. */
export type EnvironmentChange =
  | { readonly verb: 'create'; readonly configuration: EnvironmentConfiguration }
  | {
      readonly verb: 'update'
      readonly configuration: EnvironmentConfiguration
      readonly expectedRevision: bigint
    }
  | { readonly verb: 'archive' | 'restore'; readonly expectedRevision: bigint }

export interface ChangeEnvironmentInput {
  readonly operationId: OperationId
  readonly change: EnvironmentChange
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

interface ObservedStatePorts {
  readonly serving: Pick<Serving, 'overall'>
  readonly lifecycle: Pick<Lifecycle, 'observed'>
}

export interface EnvironmentPorts extends ChangePorts, ObservedStatePorts {
  readonly lifecycle: Pick<Lifecycle, 'observed' | 'follow'>
}

export function readEnvironment(ports: RootPort & ObservedStatePorts): EnvironmentState {
  return stateOf(ports, ports.root.control.read(findEnvironment)!)
}

/**
 * Returns the state right after the commit. The change is applied in the background. Throws
 * PRODUCT_CAS_CONFLICT for another revision than the expected one, PRODUCT_STATE_CONFLICT if the
 * Environment is configured, archived or active already, PRODUCT_OPERATION_REUSED, PRODUCT_INVALID.
 */
export function changeEnvironment(
  ports: EnvironmentPorts,
  actor: Actor,
  { operationId, change, changedAtMicros, requestId }: ChangeEnvironmentInput,
): Applied<EnvironmentState> {
  const { environmentId } = ports.root.descriptor
  const { verb, ...fields } = change
  const intent = {
    operationId,
    kind: `environment.${verb}`,
    request:
      'expectedRevision' in fields
        ? { ...fields, expectedRevision: String(fields.expectedRevision) }
        : { ...fields },
    changedAtMicros,
    subject: environmentId,
    requestId,
  } as const
  const applied = applyOnce(ports, actor, intent, (tx) => {
    const current = findEnvironment(tx)!
    const next: Environment = {
      ...changed(current, change),
      configurationRevision: current.configurationRevision + 1n,
      updatedAtMicros: ports.system.nowMicros(),
    }
    updateEnvironment(tx, next)
    if (next.lifecycle !== current.lifecycle) advanceRevision(tx)
    return { result: stateOf(ports, next), revision: next.configurationRevision }
  })
  if (!applied.operation.replayed) ports.lifecycle.follow(ports.root.control.read(findEnvironment)!)
  return applied
}

function changed(current: Environment, change: EnvironmentChange): Environment {
  const { configurationRevision: revision, lifecycle } = current
  if (change.verb === 'create') {
    if (revision !== 0n) throw conflict('configured')
    return { ...current, configuration: change.configuration }
  }
  if (revision !== change.expectedRevision) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${revision}` })
  }
  if (change.verb === 'update') return { ...current, configuration: change.configuration }
  const desired = change.verb === 'archive' ? 'archived' : 'active'
  if (lifecycle === desired) throw conflict(lifecycle)
  return { ...current, lifecycle: desired }
}

function stateOf(
  { serving, lifecycle }: ObservedStatePorts,
  environment: Environment,
): EnvironmentState {
  const { observed } = lifecycle
  return {
    projectId: environment.projectId,
    environmentId: environment.environmentId,
    desired: {
      revision: String(environment.configurationRevision),
      lifecycle: environment.lifecycle,
      configuration: environment.configuration,
    },
    observed: {
      revision: String(observed.revision),
      lifecycle: observed.lifecycle,
      serving: serving.overall(),
    },
    createdAtMicros: String(environment.createdAtMicros),
    updatedAtMicros: String(environment.updatedAtMicros),
  }
}

function conflict(state: Environment['lifecycle'] | 'configured'): Fault {
  const rule = `an Environment that is not ${state} yet; this one is ${state}`
  return stateConflict({ path: 'environment', rule, detail: `the Environment is ${state}` })
}

/** Returns the IDs and names that a client needs to link a directory to this Environment. */
export function readLinkable({ root }: RootPort) {
  const { projectId, environmentId, configuration } = root.control.read(findEnvironment)!
  return { projectId, environmentId, name: configuration.name, slug: configuration.slug }
}
