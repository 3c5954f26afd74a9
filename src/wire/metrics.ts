/** Metrics of the server's process (wire decisions, section 5). */
import { Micros, U64 } from './fields.ts'
import { type Infer, schema } from './schema.ts'

const Figures = schema({ '[string]': U64 })

const Histogram = schema({
  count: U64,
  sumMicros: U64,
  /** Ascending; each counts what took at most so long, that of the one before included. */
  buckets: [{ leMicros: U64, count: U64 }, '[]'],
})

/** The names and what they mean are in telemetry/metrics/names.ts. */
export const MetricsReport = schema({
  version: '1',
  collectedAtMicros: Micros,
  processStartedAtMicros: Micros,
  /** They grow while the process lives. */
  counters: Figures,
  gauges: Figures,
  histograms: schema({ '[string]': Histogram }),
})
export type MetricsReport = Infer<typeof MetricsReport>
