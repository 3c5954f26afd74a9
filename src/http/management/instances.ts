/** Health of the components of the served Environment, and the checks of the doctor. */
import type { ComponentHealth, HealthStatus } from '../../engine/usage/health.ts'
import type { DoctorReport } from '../../wire/doctor/report.ts'
import type { Health } from '../../wire/health.ts'
import { instanceOperations } from '../../wire/operations/instances.ts'
import { bind, type Route } from './route.ts'

export interface InstancesApp {
  readonly health: () => Promise<readonly ComponentHealth[]>
  /** Runs the doctor; `headers` are those of the request. Throws PRODUCT_UNAVAILABLE. */
  readonly doctor: (headers: Headers) => Promise<DoctorReport>
}

const WORST_FIRST: readonly HealthStatus[] = ['unavailable', 'degraded', 'healthy']

export const instanceRoutes: readonly Route<InstancesApp>[] = bind(instanceOperations, {
  async readHealth({ app }) {
    const components = await app.health()
    const found = new Set(components.map(({ status }) => status))
    const status = WORST_FIRST.find((each) => found.has(each)) ?? 'healthy'
    const body: Health = { version: 1, status, components: [...components] }
    return { status: 200, body }
  },

  async runDoctor({ app, request }) {
    return { status: 200, body: await app.doctor(request.headers) }
  },
})
