/** What happened in the server's process, in numbers (wire decisions, section 5). */
import { Micros, U64 } from './fields.ts'
import { message } from './schema.ts'

const Figures = message({ '[string]': U64 })

/** The names and what they mean are in telemetry/metrics/names.ts. */
export const MetricsReport = message({
  version: '1',
  collectedAtMicros: Micros,
  processStartedAtMicros: Micros,
  /** They grow while the process lives. */
  counters: Figures,
  gauges: Figures,
  histograms: {
    '[string]': message({
      count: U64,
      sumMicros: U64,
      /** Ascending; each counts what took at most so long, that of the one before included. */
      buckets: message({ leMicros: U64, count: U64 }).array(),
    }),
  },
})
export type MetricsReport = typeof MetricsReport.infer
