/** Counts spans that were not exported and logs the number, at most once a minute. */
import type { System } from '../../system/system.ts'
import type { Logger } from '../log.ts'

/** While no receiver is there, every batch would be a record. */
const REPORT_MILLIS = 60_000

export class DroppedSpans {
  readonly #log: Logger
  readonly #system: Pick<System, 'monotonicMillis'>
  readonly #count: (spans: number) => void
  #unreported = 0
  #reason = ''
  #reportedMillis = Number.NEGATIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | null = null

  constructor(
    log: Logger,
    system: Pick<System, 'monotonicMillis'>,
    count: (spans: number) => void,
  ) {
    this.#log = log
    this.#system = system
    this.#count = count
  }

  add(spans: number, reason: string): void {
    this.#count(spans)
    this.#unreported += spans
    this.#reason = reason
    const pause = this.#reportedMillis + REPORT_MILLIS - this.#system.monotonicMillis()
    if (pause <= 0) this.report()
    else if (this.#timer === null) {
      this.#timer = setTimeout(() => this.report(), pause)
      this.#timer.unref()
    }
  }

  /** Logs what was dropped since the last record. */
  report(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#unreported === 0) return
    const count = this.#unreported
    this.#unreported = 0
    this.#reportedMillis = this.#system.monotonicMillis()
    const message = `${count} spans of traces were not exported.`
    this.#log.warn('traces.dropped', { message, count, reason: this.#reason })
  }
}
