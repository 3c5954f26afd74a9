/** Liveness and readiness (Document 1, Endpoints). */
import * as z from 'zod'

export const Live = z.strictObject({ status: z.literal('live') })
export type Live = z.infer<typeof Live>

export const Ready = z.strictObject({ status: z.enum(['ready', 'unavailable']) })
export type Ready = z.infer<typeof Ready>

const HealthStatus = z.enum(['healthy', 'degraded', 'unavailable'])

/** Parts of the served Environment, and the worst of them (wire decisions, section 5). */
export const Health = z.strictObject({
  version: z.literal(1),
  status: HealthStatus,
  /** Those that this server has. */
  components: z
    .strictObject({
      name: z.enum(['runtime', 'documents', 'scheduler', 'files', 'realtime', 'logs']),
      status: HealthStatus,
    })
    .array(),
})
export type Health = z.infer<typeof Health>
