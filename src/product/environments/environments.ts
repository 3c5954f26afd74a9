/**
 * Desired and observed state of the Environment. Every change of configuration or lifecycle is one
 * revision and names the one that it follows. Archiving stops serving and nothing else: Releases
 * are published and Channels promoted all the same, and serve once the Environment is restored.
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
import { type Applied, applyOnce } from '../idempotency/idempotency-records.ts'
import type { Product } from '../product.ts'

type LifecycleState = Environment['lifecycle']

/** As it is stored with an operation that is repeated: JSON, so numbers are decimal text. */
export type EnvironmentState = {
  projectId: Environment['projectId']
  environmentId: Environment['environmentId']
  desired: {
    revision: string
    lifecycle: LifecycleState
    configuration: EnvironmentConfiguration
  }
  /** The newest revision that was carried out. */
  observed: {
    revision: string
    lifecycle: LifecycleState
    serving: 'stopped' | 'starting' | 'serving'
  }
  createdAtMicros: string
  updatedAtMicros: string
}

/** `create` is the first change to what `svc init` made. */
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

export function readEnvironment(
  app: Pick<Product, 'root' | 'serving' | 'lifecycle'>,
): EnvironmentState {
  return stateOf(app, app.root.control.read(findEnvironment)!)
}

/**
 * Answers the state right after the commit; what it asks for is carried out from there on. Throws
 * PRODUCT_CAS_CONFLICT for another revision than the expected one, PRODUCT_STATE_CONFLICT where the
 * Environment is configured, archived or active already, PRODUCT_OPERATION_REUSED, PRODUCT_INVALID.
 */
export function changeEnvironment(
  app: Pick<Product, 'system' | 'root' | 'audit' | 'serving' | 'lifecycle'>,
  actor: Actor,
  { operationId, change, changedAtMicros, requestId }: ChangeEnvironmentInput,
): Applied<EnvironmentState> {
  const { environmentId } = app.root.descriptor
  const { verb, ...asked } = change
  const intent = {
    operationId,
    kind: `environment.${verb}`,
    request:
      'expectedRevision' in asked
        ? { ...asked, expectedRevision: String(asked.expectedRevision) }
        : { ...asked },
    changedAtMicros,
    subject: environmentId,
    requestId,
  } as const
  const applied = applyOnce(app, actor, intent, (tx) => {
    const current = findEnvironment(tx)!
    const next: Environment = {
      ...changed(current, change),
      configurationRevision: current.configurationRevision + 1n,
      updatedAtMicros: app.system.nowMicros(),
    }
    updateEnvironment(tx, next)
    if (next.lifecycle !== current.lifecycle) advanceRevision(tx)
    return { result: stateOf(app, next), revision: next.configurationRevision }
  })
  if (!applied.operation.replayed) app.lifecycle.follow(app.root.control.read(findEnvironment)!)
  return applied
}

function changed(current: Environment, change: EnvironmentChange): Environment {
  const { configurationRevision: revision, lifecycle } = current
  if (change.verb === 'create') {
    if (revision !== 0n) throw conflict(`is configured, revision ${revision}`)
    return { ...current, configuration: change.configuration }
  }
  if (revision !== change.expectedRevision) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${revision}` })
  }
  if (change.verb === 'update') return { ...current, configuration: change.configuration }
  const wanted = change.verb === 'archive' ? 'archived' : 'active'
  if (lifecycle === wanted) throw conflict(`is ${lifecycle}`)
  return { ...current, lifecycle: wanted }
}

function stateOf(
  { serving, lifecycle }: Pick<Product, 'serving' | 'lifecycle'>,
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

function conflict(detail: string): Fault {
  return new Fault('PRODUCT_STATE_CONFLICT', { detail: `the Environment ${detail}` })
}

/** What a client needs to link a directory to this Environment. */
export function readLinkable({ root }: Pick<Product, 'root'>) {
  const { projectId, environmentId, configuration } = root.control.read(findEnvironment)!
  return { projectId, environmentId, name: configuration.name, slug: configuration.slug }
}
