/** Liveness and readiness (contract/management.md, Authentication and session routes). */
import { Micros, text } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const Live = schema({ status: "'live'" })
export type Live = Infer<typeof Live>

export const Ready = schema({ status: "'ready' | 'unavailable'" })
export type Ready = Infer<typeof Ready>

const HealthStatus = schema("'healthy' | 'degraded' | 'unavailable'")

/**
 * Health of the components of the Environment, and the worst of them (contract/wire.md, Health).
 */
export const Health = schema({
  version: '1',
  status: HealthStatus,
  /** The components of this server. */
  components: [
    {
      /** Not a list of names: a client shows components that only a newer server has. */
      name: text(/^[a-z][a-z-]{0,31}$/, 'the name of a component'),
      status: HealthStatus,
      /** The end of the last rehearsal of a restore, which `backups` alone has. */
      'lastRehearsal?': schema({ outcome: "'passed' | 'failed'", atMicros: Micros } as const),
    },
    '[]',
  ],
})
export type Health = Infer<typeof Health>
