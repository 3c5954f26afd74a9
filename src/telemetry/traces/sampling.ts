/** Decides which traces are exported. */
import type { System } from '../../system/system.ts'
import type { TraceContext } from './trace-context.ts'

/** Traces that callers may have exported beyond the configured share, over time and at once. */
const ASKED_PER_SECOND = 10
const ASKED_BURST = 100

export class Sampling {
  readonly #system: Pick<System, 'monotonicMillis' | 'randomBytes'>
  readonly #ratio: number
  #tokens = ASKED_BURST
  #atMillis: number

  /** `ratio` is the share of the traces that begin here, from 0 to 1. */
  constructor(system: Pick<System, 'monotonicMillis' | 'randomBytes'>, ratio: number) {
    this.#system = system
    this.#ratio = ratio
    this.#atMillis = system.monotonicMillis()
  }

  /**
   * The caller's decision holds, but its sampled flag only within a bound, beyond which the share
   * decides. The share is drawn here: a caller chooses its trace ID, and could choose one that is
   * always sampled.
   */
  samples(caller: TraceContext | null): boolean {
    if (caller?.isSampled === false) return false
    return this.#draw() || (caller !== null && this.#takeToken())
  }

  #draw(): boolean {
    if (this.#ratio === 0 || this.#ratio === 1) return this.#ratio === 1
    const [a, b, c, d] = this.#system.randomBytes(4)
    return (a! * 2 ** 24 + b! * 2 ** 16 + c! * 2 ** 8 + d!) / 2 ** 32 < this.#ratio
  }

  #takeToken(): boolean {
    const now = this.#system.monotonicMillis()
    const gained = ((now - this.#atMillis) / 1000) * ASKED_PER_SECOND
    this.#atMillis = now
    this.#tokens = Math.min(this.#tokens + gained, ASKED_BURST)
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}
