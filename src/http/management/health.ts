/** Liveness of the process, and readiness of its identity database. */
import { Live, Ready } from '../../wire/health.ts'
import { publicRoute, type Route } from './route.ts'

export interface HealthApp {
  readonly identity: { ready(): Promise<boolean> }
}

export const healthRoutes: readonly Route<HealthApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/health/live',
    name: 'readLiveness',
    summary: 'Reports whether the process runs.',
    rate: 'none',
    replies: { 200: Live },
    handle() {
      const body: Live = { status: 'live' }
      return { status: 200, body }
    },
  }),

  publicRoute({
    method: 'GET',
    path: '/health/ready',
    name: 'readReadiness',
    summary: 'Reports whether the identity database answers.',
    rate: 'none',
    replies: { 200: Ready, 503: Ready },
    async handle({ app }) {
      const ready = await app.identity.ready()
      const body: Ready = { status: ready ? 'ready' : 'unavailable' }
      return { status: ready ? 200 : 503, body }
    },
  }),
]
