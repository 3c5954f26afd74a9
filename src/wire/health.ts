/** Liveness and readiness (Document 1, Endpoints). */
import { type Infer, schema } from './schema.ts'

export const Live = schema({ status: "'live'" })
export type Live = Infer<typeof Live>

export const Ready = schema({ status: "'ready' | 'unavailable'" })
export type Ready = Infer<typeof Ready>

const HealthStatus = schema("'healthy' | 'degraded' | 'unavailable'")

/** Health of the components of the Environment, and the worst of them (wire, section 5). */
export const Health = schema({
  version: '1',
  status: HealthStatus,
  /** The components of this server. */
  components: [
    {
      name: "'runtime' | 'documents' | 'scheduler' | 'releases' | 'files' | 'realtime' | 'logs'",
      status: HealthStatus,
    },
    '[]',
  ],
})
export type Health = Infer<typeof Health>
