/** Desired and observed state of the Environment. */
import { readEnvironment } from '../../product/environments.ts'
import type { EnvironmentState } from '../../wire/environment.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const environmentRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '',
    capability: 'environments:read',
    handle({ app }) {
      const { environment, observed } = readEnvironment(app.product)
      const body: EnvironmentState = {
        version: 1,
        projectId: environment.projectId,
        environmentId: environment.environmentId,
        desired: {
          revision: String(environment.configurationRevision),
          lifecycle: environment.lifecycle,
          configuration: environment.configuration,
        },
        observed: { ...observed, revision: String(observed.revision) },
        createdAtMicros: String(environment.createdAtMicros),
        updatedAtMicros: String(environment.updatedAtMicros),
      }
      return { status: 200, body }
    },
  }),
]
