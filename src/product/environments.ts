/** Desired and observed state of the Environment. */
import { type Environment, findEnvironment } from '../storage/control/environment.ts'
import type { Product } from './product.ts'

export interface EnvironmentState {
  readonly environment: Environment
  /** The compact server applies a configuration with its commit: observed is what is desired. */
  readonly observed: {
    readonly revision: bigint
    readonly lifecycle: Environment['lifecycle']
    readonly serving: 'stopped' | 'starting' | 'serving'
  }
}

export function readEnvironment({
  root,
  serving,
}: Pick<Product, 'root' | 'serving'>): EnvironmentState {
  const environment = root.control.read(findEnvironment)!
  return {
    environment,
    observed: {
      revision: environment.configurationRevision,
      lifecycle: environment.lifecycle,
      serving: serving.overall(),
    },
  }
}

/** What a client needs to link a directory to this Environment. */
export function readLinkable({ root }: Pick<Product, 'root'>) {
  const { projectId, environmentId, configuration } = root.control.read(findEnvironment)!
  return { projectId, environmentId, name: configuration.name, slug: configuration.slug }
}
