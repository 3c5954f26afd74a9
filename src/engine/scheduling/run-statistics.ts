/**
 * Counts runs of scheduled work and measures how late they start. Functions come and go, so the
 * failures of each one are a log record once a minute, for a bounded number of Functions.
 */
import type { Logger } from '../../telemetry/log.ts'
import type { Histogram, Metrics } from '../../telemetry/metrics/metrics.ts'
import { UsagePeriods } from '../../telemetry/usage-periods.ts'
import type { ScheduledWork } from '../scheduled-work/scheduled-documents.ts'
import type { RunEnd } from './work-runs.ts'

interface FailedRuns {
  /** Null for all Functions beyond the bound. */
  readonly subject: { readonly releaseId: string; readonly function: string } | null
  failed: number
}

export class RunStatistics {
  readonly #lateness: Histogram
  readonly #failures: UsagePeriods<string, FailedRuns>
  #succeeded = 0
  #failed = 0

  constructor({ metrics, log }: { readonly metrics: Metrics; readonly log: Logger }) {
    this.#lateness = metrics.histograms.scheduledLatenessMicros
    this.#failures = new UsagePeriods({
      others: (): FailedRuns => ({ subject: null, failed: 0 }),
      write: ({ subject, failed }) => {
        const message = `${subject?.function ?? 'Further Functions'} failed ${failed} times.`
        log.warn('schedule.failures', { message, ...subject, failed })
      },
    })
  }

  get succeeded(): number {
    return this.#succeeded
  }

  get failed(): number {
    return this.#failed
  }

  started({ dueAtMicros }: ScheduledWork, nowMicros: bigint): void {
    this.#lateness.observe(Math.max(0, Number(nowMicros - dueAtMicros)))
  }

  ended({ releaseId, function: name }: ScheduledWork, end: RunEnd): void {
    if (end === 'succeeded') this.#succeeded += 1
    if (end !== 'failed' && end !== 'postponed') return
    this.#failed += 1
    const key = `${releaseId} ${name}`
    const usage =
      this.#failures.find(key) ??
      this.#failures.begin(key, { subject: { releaseId, function: name }, failed: 0 })
    usage.failed += 1
  }

  /** Writes the records of the current period. */
  stop(): void {
    this.#failures.stop()
  }
}
