/**
 * Something that is desired at once and comes true later. What was observed before stays until
 * then, so that neither a slow disk nor a damaged artifact takes traffic down.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'

export interface Desired<T> {
  /** Those with the same key are the same; the log and the faults name it. */
  readonly key: string
  /** What is there without waiting, else null. */
  ready(): T | null
  load(): Promise<T>
}

interface ConvergenceOptions<T> {
  readonly system: Pick<System, 'monotonicMillis'>
  readonly observed: (value: T) => void
  readonly failed: (key: string, error: unknown) => void
}

const RETRY_MS = 1_000

export class Convergence<T> {
  readonly #options: ConvergenceOptions<T>
  readonly #loading = new Set<Promise<T>>()
  #desired: Desired<T> | null = null
  #observed: { readonly key: string; readonly value: T } | null = null
  #refresh: Promise<T> | null = null
  /** Monotonic time of the last failure to load what is desired. */
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
   * What is observed; null where nothing is desired. A promise only before the first time; it
   * rejects with what `load` throws, or PRODUCT_UNAVAILABLE within a second of that.
   */
  find(): T | Promise<T> | null {
    if (this.#desired === null) return null
    if (this.#observed?.key === this.#desired.key) return this.#observed.value
    if (this.#observed === null) return this.#load(this.#desired)
    this.#refreshInBackground(this.#desired)
    return this.#observed.value
  }

  /** What is observed now; asks for what is not. */
  peek(): T | null {
    if (this.#desired !== null && !this.isConverged) this.#refreshInBackground(this.#desired)
    return this.#observed?.value ?? null
  }

  get isConverged(): boolean {
    return this.#observed?.key === this.#desired?.key
  }

  /** Nothing is desired any more, and what is being loaded is not observed. */
  end(): void {
    this.#desired = null
    this.#observed = null
  }

  /** Resolves when nothing is being loaded, whatever came of it. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#loading)
  }

  #refreshInBackground(desired: Desired<T>): void {
    this.#load(desired).catch(() => undefined)
  }

  #load(desired: Desired<T>): Promise<T> {
    if (this.#refresh !== null) return this.#refresh
    // A damaged artifact is not read again for every request that asks for it.
    if (this.#options.system.monotonicMillis() - this.#failedAtMillis < RETRY_MS) {
      return Promise.reject(new Fault('PRODUCT_UNAVAILABLE', { detail: desired.key }))
    }
    const refresh = this.#attempt(desired).finally(() => {
      this.#loading.delete(refresh)
      if (this.#refresh === refresh) this.#refresh = null
    })
    this.#refresh = refresh
    this.#loading.add(refresh)
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
      this.#options.failed(desired.key, error)
      throw error
    }
  }

  /** What was replaced while it was loading is not observed any more. */
  #observe(desired: Desired<T>, value: T): void {
    if (this.#desired !== desired) return
    this.#observed = { key: desired.key, value }
    this.#options.observed(value)
  }
}
