/** What happened in the server's process, in numbers (wire decisions, section 5). */
import * as z from 'zod'
import { Micros, U64 } from './fields.ts'

const Figures = z.record(z.string(), U64)

/** The names and what they mean are in telemetry/metrics/names.ts. */
export const MetricsReport = z.strictObject({
  version: z.literal(1),
  collectedAtMicros: Micros,
  processStartedAtMicros: Micros,
  /** They grow while the process lives. */
  counters: Figures,
  gauges: Figures,
  histograms: z.record(
    z.string(),
    z.strictObject({
      count: U64,
      sumMicros: U64,
      /** Ascending; each counts what took at most so long, that of the one before included. */
      buckets: z.strictObject({ leMicros: U64, count: U64 }).array(),
    }),
  ),
})
export type MetricsReport = z.infer<typeof MetricsReport>
