/** Product Environments that an operator may link, with its capabilities at each. */
import type { Capability } from '../value/capabilities.ts'
import type { EnvironmentId, ProjectId } from '../value/ids.ts'
import { environmentScope, scopeContains } from '../value/scope.ts'
import type { Actor } from './actor.ts'

/** An Environment that the server composes, given by the caller. */
export interface LinkableEnvironment {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
  readonly name: string
  readonly slug: string
  /** null if no public origin is configured. */
  readonly managementOrigin: string | null
}

export interface Resource extends LinkableEnvironment {
  /** Capabilities of the actor there, sorted and never empty. */
  readonly capabilities: readonly Capability[]
}

/** Returns the Environments within the actor's grants. */
export function visibleResources(
  actor: Actor,
  environments: readonly LinkableEnvironment[],
): Resource[] {
  return environments.flatMap((environment) => {
    const scope = environmentScope(environment.projectId, environment.environmentId)
    const capabilities = new Set(
      actor.grants
        .filter((grant) => scopeContains(grant.scope, scope))
        .flatMap((grant) => grant.capabilities),
    )
    if (capabilities.size === 0) return []
    return [{ ...environment, capabilities: [...capabilities].sort() }]
  })
}
