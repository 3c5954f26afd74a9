/** Metrics of the server's process (contract/wire.md, Metrics). */
import { idField, Micros, U64 } from './fields.ts'
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

/** Calls of each Function of a target in the last hour, in all processes of the server. */
export const FunctionFiguresReport = schema({
  version: '1',
  releaseId: idField('rel'),
  collectedAtMicros: Micros,
  /** The figures have no call before this. */
  sinceMicros: Micros,
  /** The Functions that were called, sorted by name. */
  functions: [
    {
      name: 'string',
      kind: "'query' | 'mutation' | 'action'",
      /** All calls, with those that were answered from the cache. */
      calls: U64,
      cached: U64,
      /** Calls that ended with an error below 500, such as one that the Function declares. */
      rejected: U64,
      /** Calls that ended with an error of 500 or more. */
      failed: U64,
      /** Percentiles of the time from admission to the result; null if no call was executed. */
      p50Micros: [U64, '|', 'null'],
      p95Micros: [U64, '|', 'null'],
      p99Micros: [U64, '|', 'null'],
    },
    '[]',
  ],
})
export type FunctionFiguresReport = Infer<typeof FunctionFiguresReport>
