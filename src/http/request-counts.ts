/** Counts and measures the requests of one origin, and counts their failures by kind. */
import type { Fault } from '../errors/fault.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

/** The histogram of each class of routes. A route belongs to at most one of them. */
const DURATIONS = {
  call: 'callRequestDurationMicros',
  upload: 'uploadRequestDurationMicros',
  download: 'downloadRequestDurationMicros',
  development: 'developmentRequestDurationMicros',
  hook: 'hookRequestDurationMicros',
  endpoint: 'endpointRequestDurationMicros',
  managementRead: 'managementReadDurationMicros',
  managementChange: 'managementChangeDurationMicros',
} as const
export type RouteClass = keyof typeof DURATIONS

/** The status that proxies log for a client that disconnected. It is counted and never sent. */
const CALLER_GONE = 499

/** Returns the status to count. A failure after the caller disconnected is not the server's. */
export function countedStatus(request: Request, status: number): number {
  return status >= 500 && request.signal.aborted ? CALLER_GONE : status
}

export interface RequestCounts {
  /**
   * Counts a request once, by the counted status of its response. Routes with a class also record
   * the duration in milliseconds.
   */
  answered(status: number, routeClass?: RouteClass, millis?: number): void
  /** Counts a failure by its kind. Call it in addition to `answered`. */
  failed(fault: Fault): void
  /** Counts a delivery of another service that is stored, or was before. */
  delivered(isRepeat: boolean): void
  /** Counts the bytes of a file that was stored or is sent. */
  transferred(direction: 'uploaded' | 'downloaded', bytes: number): void
}

export function requestCounts(
  { counters, histograms }: Metrics,
  surface: 'management' | 'application',
): RequestCounts {
  const succeeded = counters[`${surface}RequestsSucceeded`]
  const rejected = counters[`${surface}RequestsRefused`]
  const failed = counters[`${surface}RequestsFailed`]
  return {
    answered(status, routeClass, millis) {
      const counter = status < 400 ? succeeded : status < 500 ? rejected : failed
      counter.add()
      if (routeClass !== undefined && millis !== undefined) {
        histograms[DURATIONS[routeClass]].observe(millis * 1000)
      }
    },
    failed({ kind }) {
      if (kind === 'unauthenticated') counters[`${surface}AuthenticationFailures`].add()
      else if (kind === 'rate_limited') counters[`${surface}RateLimited`].add()
    },
    delivered(isRepeat) {
      counters[isRepeat ? 'deliveriesRepeated' : 'deliveriesAccepted'].add()
    },
    transferred(direction, bytes) {
      counters[`${direction}Bytes`].add(bytes)
    },
  }
}
