/** The times of bases: when the next one is due, and when one that failed is tried again. */
import type { System } from '../../system/system.ts'
import type { Sidecar } from '../../wire/files/backups.ts'
import type { BaseReason } from './continuous-options.ts'
import { retryMillis } from './retries.ts'

export class BaseSchedule {
  readonly #system: Pick<System, 'nowMicros' | 'monotonicMillis'>
  readonly #intervalMillis: number
  #retryAtMillis = 0
  #retries = 0

  constructor(system: Pick<System, 'nowMicros' | 'monotonicMillis'>, intervalMillis: number) {
    this.#system = system
    this.#intervalMillis = intervalMillis
  }

  /**
   * Returns the cause of the base that is due; null for none. `isJoined` is false while increments
   * are missing after the last base.
   */
  due(last: Sidecar | null, isJoined: boolean): BaseReason | null {
    if (this.#system.monotonicMillis() < this.#retryAtMillis) return null
    if (last === null) return 'start'
    if (!isJoined) return 'gap'
    const ageMicros = this.#system.nowMicros() - BigInt(last.atMicros)
    return ageMicros >= BigInt(this.#intervalMillis) * 1_000n ? 'interval' : null
  }

  noteSuccess(): void {
    this.#retries = 0
  }

  noteFailure(): void {
    this.#retryAtMillis = this.#system.monotonicMillis() + retryMillis(this.#retries++)
  }
}
