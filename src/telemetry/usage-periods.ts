/**
 * Collects usage per subject, such as a Function or an Application Key, for which there are no
 * metrics, since subjects come and go. Once a minute it writes one log record per subject.
 */

const PERIOD_MILLIS = 60_000
/**
 * Bounds the memory and the records of a period: Releases and keys can name any number of subjects.
 */
const SUBJECTS_MAX = 1_000

export interface UsagePeriodsOptions<Usage> {
  /** Creates the shared usage of all subjects beyond `subjectsMax`. */
  readonly others: () => Usage
  readonly write: (usage: Usage) => void
  /** Subjects with separate usage in one period; the others share one. 1,000 by default. */
  readonly subjectsMax?: number
}

export class UsagePeriods<Subject, Usage> {
  readonly #options: UsagePeriodsOptions<Usage>
  #usageOf = new Map<Subject, Usage>()
  #others: Usage | null = null
  readonly #timer: ReturnType<typeof setInterval>

  constructor(options: UsagePeriodsOptions<Usage>) {
    this.#options = options
    this.#timer = setInterval(() => this.report(), PERIOD_MILLIS)
    this.#timer.unref()
  }

  /** The usage in this period; undefined where the subject was not used in it yet. */
  find(subject: Subject): Usage | undefined {
    return this.#usageOf.get(subject)
  }

  /** Adds a subject that `find` does not find. Returns its usage, or the shared one. */
  begin(subject: Subject, usage: Usage): Usage {
    if (this.#usageOf.size >= (this.#options.subjectsMax ?? SUBJECTS_MAX)) {
      this.#others ??= this.#options.others()
      return this.#others
    }
    this.#usageOf.set(subject, usage)
    return usage
  }

  /** Writes the usage of the period, the shared one last, and starts a new period. */
  report(): void {
    const usages = this.#usageOf
    const others = this.#others
    this.#usageOf = new Map()
    this.#others = null
    for (const usage of usages.values()) this.#options.write(usage)
    if (others !== null) this.#options.write(others)
  }

  /** Writes the usage of the current period and stops. */
  stop(): void {
    clearInterval(this.#timer)
    this.report()
  }
}
