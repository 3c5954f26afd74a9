/** Liveness and readiness (Document 1, Endpoints). */
import { message } from './schema.ts'

export const Live = message({ status: "'live'" })
export type Live = typeof Live.infer

export const Ready = message({ status: "'ready' | 'unavailable'" })
export type Ready = typeof Ready.infer

const HealthStatus = message("'healthy' | 'degraded' | 'unavailable'")

/** Parts of the served Environment, and the worst of them (wire decisions, section 5). */
export const Health = message({
  version: '1',
  status: HealthStatus,
  /** Those that this server has. */
  components: message({
    name: "'runtime' | 'documents' | 'scheduler' | 'files' | 'realtime' | 'logs'",
    status: HealthStatus,
  }).array(),
})
export type Health = typeof Health.infer
