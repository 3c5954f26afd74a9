/** Liveness of the process, and readiness of what it depends on. */
import type { Live, Ready } from '../../wire/health.ts'
import { publicRoute, type Route } from '../route.ts'

export interface HealthApp {
  readonly identity: { ready(): Promise<boolean> }
}

export const healthRoutes: readonly Route<HealthApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/health/live',
    rate: 'none',
    handle() {
      const body: Live = { status: 'live' }
      return { status: 200, body }
    },
  }),

  publicRoute({
    method: 'GET',
    path: '/health/ready',
    rate: 'none',
    async handle({ app }) {
      const ready = await app.identity.ready()
      const body: Ready = { status: ready ? 'ready' : 'unavailable' }
      return { status: ready ? 200 : 503, body }
    },
  }),
]
