/**
 * Figures of what comes and goes, such as Functions and Application Keys, which are no names of
 * metrics: gathered for a minute, then given to whoever writes them as one log record each.
 */

const PERIOD_MILLIS = 60_000
const SUBJECTS_MAX = 1_000

export interface UsagePeriodsOptions<Usage> {
  /** Figures that say of no subject whose they are. */
  readonly others: () => Usage
  readonly write: (usage: Usage) => void
  /** Subjects with figures of their own in one period; the others share some. 1,000 by default. */
  readonly subjectsMax?: number
}

export class UsagePeriods<Subject, Usage> {
  readonly #options: UsagePeriodsOptions<Usage>
  #used = new Map<Subject, Usage>()
  #others: Usage | null = null
  readonly #timer: ReturnType<typeof setInterval>

  constructor(options: UsagePeriodsOptions<Usage>) {
    this.#options = options
    this.#timer = setInterval(() => this.report(), PERIOD_MILLIS)
    this.#timer.unref()
  }

  /** Of this period; undefined where the subject was not used in it yet. */
  find(subject: Subject): Usage | undefined {
    return this.#used.get(subject)
  }

  /** Once `find` finds none: the figures to count in, which are not the given ones for too many. */
  begin(subject: Subject, usage: Usage): Usage {
    if (this.#used.size >= (this.#options.subjectsMax ?? SUBJECTS_MAX)) {
      this.#others ??= this.#options.others()
      return this.#others
    }
    this.#used.set(subject, usage)
    return usage
  }

  /** Writes the figures since the last time, those of the others last, and begins anew. */
  report(): void {
    const used = this.#used
    const others = this.#others
    this.#used = new Map()
    this.#others = null
    for (const usage of used.values()) this.#options.write(usage)
    if (others !== null) this.#options.write(others)
  }

  /** Writes what the last period still lacks. */
  stop(): void {
    clearInterval(this.#timer)
    this.report()
  }
}
