/** Metrics of the server's process (contract/wire.md, Metrics). */
import { Micros, U64 } from './fields.ts'
import { type Infer, schema } from './schema.ts'

const Numbers = schema({ '[string]': U64 })

const Histogram = schema({
  count: U64,
  sumMicros: U64,
  /** Cumulative counts of durations up to `leMicros`, ascending. */
  buckets: [{ leMicros: U64, count: U64 }, '[]'],
})

/** telemetry/metrics/definitions.ts defines the names. */
export const MetricsReport = schema({
  version: '1',
  collectedAtMicros: Micros,
  processStartedAtMicros: Micros,
  /** Monotonic while the process runs. */
  counters: Numbers,
  gauges: Numbers,
  histograms: schema({ '[string]': Histogram }),
})
export type MetricsReport = Infer<typeof MetricsReport>
