/** Liveness of the process, and readiness of its identity database. */
import type { Live, Ready } from '../../wire/health.ts'
import { healthOperations } from '../../wire/operations/health.ts'
import { bind, type Route } from './route.ts'

export interface HealthApp {
  readonly identity: { ready(): Promise<boolean> }
}

export const healthRoutes: readonly Route<HealthApp>[] = bind(healthOperations, {
  readLiveness() {
    const body: Live = { status: 'live' }
    return { status: 200, body }
  },

  async readReadiness({ app }) {
    const ready = await app.identity.ready()
    const body: Ready = { status: ready ? 'ready' : 'unavailable' }
    return { status: ready ? 200 : 503, body }
  },
})
