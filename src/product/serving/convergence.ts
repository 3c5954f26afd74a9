/**
 * Convergence of an observed value on a desired one that takes time to load. The earlier value
 * stays observed until the load ends, so that neither a slow disk nor a damaged artifact stops
 * traffic.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'

export interface Desired<T> {
  /** Identifies the desired value; the log and the faults show it. */
  readonly key: string
  /** Returns the value if it needs no loading, else null. */
  ready(): T | null
  load(): Promise<T>
}

interface ConvergenceOptions<T> {
  readonly system: Pick<System, 'monotonicMillis'>
  readonly onObserved: (value: T) => void
  readonly onFailure: (key: string, error: unknown) => void
}

/** Pause after a failed load, in which requests fail at once instead of loading again. */
const RETRY_MS = 1_000

export class Convergence<T> {
  readonly #options: ConvergenceOptions<T>
  /** All loads in progress, those of replaced values included. */
  readonly #loads = new Set<Promise<T>>()
  #desired: Desired<T> | null = null
  #observed: { readonly key: string; readonly value: T } | null = null
  /** The load of the desired value. */
  #refresh: Promise<T> | null = null
  /** Monotonic milliseconds of the last failure to load the desired value. */
  #failedAtMillis = Number.NEGATIVE_INFINITY

  constructor(options: ConvergenceOptions<T>) {
    this.#options = options
  }

  desire(desired: Desired<T>): void {
    if (this.#desired?.key === desired.key) return
    this.#desired = desired
    this.#refresh = null
    this.#failedAtMillis = Number.NEGATIVE_INFINITY
    const ready = desired.ready()
    if (ready !== null) this.#observe(desired, ready)
    else this.#refreshInBackground(desired)
  }

  /**
   * Returns the observed value; null if nothing is desired. Returns a promise only until the first
   * value is observed; it rejects with the error of `load`, and with PRODUCT_UNAVAILABLE for a
   * second after such an error.
   */
  find(): T | Promise<T> | null {
    if (this.#desired === null) return null
    if (this.#observed?.key === this.#desired.key) return this.#observed.value
    if (this.#observed === null) return this.#load(this.#desired)
    this.#refreshInBackground(this.#desired)
    return this.#observed.value
  }

  /** Returns the observed value, if any, and starts to load the desired one if it differs. */
  peek(): T | null {
    if (this.#desired !== null && !this.isConverged) this.#refreshInBackground(this.#desired)
    return this.#observed?.value ?? null
  }

  /** The key of the observed value; null before the first one. */
  get observedKey(): string | null {
    return this.#observed?.key ?? null
  }

  get isConverged(): boolean {
    return this.#observed?.key === this.#desired?.key
  }

  /** Returns whether the last attempt to load the desired value failed. */
  get isFailing(): boolean {
    return !this.isConverged && this.#failedAtMillis !== Number.NEGATIVE_INFINITY
  }

  /** Drops the desired and the observed value; loads in progress observe nothing. */
  end(): void {
    this.#desired = null
    this.#observed = null
  }

  get isLoading(): boolean {
    return this.#loads.size > 0
  }

  /** Resolves when no load is in progress, even if loads failed. */
  async whenIdle(): Promise<void> {
    await Promise.allSettled(this.#loads)
  }

  #refreshInBackground(desired: Desired<T>): void {
    this.#load(desired).catch(() => undefined)
  }

  #load(desired: Desired<T>): Promise<T> {
    if (this.#refresh !== null) return this.#refresh
    // Within RETRY_MS of a failure nothing is loaded, so that a damaged artifact is not read again
    // for every request that needs it.
    if (this.#options.system.monotonicMillis() - this.#failedAtMillis < RETRY_MS) {
      return Promise.reject(new Fault('PRODUCT_UNAVAILABLE', { detail: desired.key }))
    }
    const refresh = this.#attempt(desired).finally(() => {
      this.#loads.delete(refresh)
      if (this.#refresh === refresh) this.#refresh = null
    })
    this.#refresh = refresh
    this.#loads.add(refresh)
    return refresh
  }

  async #attempt(desired: Desired<T>): Promise<T> {
    try {
      const value = await desired.load()
      this.#observe(desired, value)
      return value
    } catch (error) {
      if (this.#desired === desired) {
        this.#failedAtMillis = this.#options.system.monotonicMillis()
      }
      this.#options.onFailure(desired.key, error)
      throw error
    }
  }

  /** Ignores a value whose replacement was desired while it loaded. */
  #observe(desired: Desired<T>, value: T): void {
    if (this.#desired !== desired) return
    this.#observed = { key: desired.key, value }
    this.#options.onObserved(value)
  }
}
