/** The Product Environments that the caller may link. */
import { Fault } from '../../../errors/fault.ts'
import { type LinkableEnvironment, visibleResources } from '../../../identity/resources.ts'
import { RESOURCES_BYTES_MAX, RESOURCES_MAX, type Resources } from '../../../wire/identity/auth.ts'
import { resourceOperations } from '../../../wire/operations/identity/resources.ts'
import { bind, type Route } from '../route.ts'

export interface ResourcesApp {
  /** Environments of this server that may be linked to a Project. */
  linkableEnvironments(): Promise<readonly LinkableEnvironment[]>
}

export const resourceRoutes: readonly Route<ResourcesApp>[] = bind(resourceOperations, {
  async listResources({ app, actor }) {
    const visible = visibleResources(actor, await app.linkableEnvironments())
    const body: Resources = {
      version: 1,
      resources: visible.map((resource) => ({
        projectId: resource.projectId,
        environmentId: resource.environmentId,
        name: resource.name,
        slug: resource.slug,
        managementOrigin: resource.managementOrigin,
        capabilities: [...resource.capabilities],
      })),
    }
    // A client could not recognize a truncated list.
    const fits = visible.length <= RESOURCES_MAX && byteLength(body) <= RESOURCES_BYTES_MAX
    if (!fits)
      throw new Fault('PLATFORM_INTERNAL', { detail: 'the list of resources exceeds its limit' })
    return { status: 200, body }
  },
})

function byteLength(body: object): number {
  return new TextEncoder().encode(JSON.stringify(body)).length
}
