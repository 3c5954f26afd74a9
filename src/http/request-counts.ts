/** Counts the requests of one origin by status, and their failures by kind. */
import type { Fault } from '../errors/fault.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

export interface RequestCounts {
  /** Counts a request once, with the counted status of its response. */
  answered(status: number): void
  /** Counts a failure by its kind, in addition. */
  failed(fault: Fault): void
}

export function requestCounts(
  { counters }: Metrics,
  surface: 'management' | 'application',
): RequestCounts {
  const succeeded = counters[`${surface}RequestsSucceeded`]
  const refused = counters[`${surface}RequestsRefused`]
  const failed = counters[`${surface}RequestsFailed`]
  return {
    answered(status) {
      const counter = status < 400 ? succeeded : status < 500 ? refused : failed
      counter.add()
    },
    failed({ kind }) {
      if (kind === 'unauthenticated') counters[`${surface}AuthenticationFailures`].add()
      else if (kind === 'rate_limited') counters[`${surface}RateLimited`].add()
    },
  }
}
