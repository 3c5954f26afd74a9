/** The start of a runner: its hello, then the load of its Release, each with a time bound. */
import type { LoadFailure, RunnerFate } from '../calls/outcomes.ts'
import type { Hello } from './ports.ts'

export class RunnerStart {
  /** Resolves with null if the runner ended before its hello. */
  readonly hello: Promise<Hello | null>
  #resolveHello: ((hello: Hello | null) => void) | null
  #resolveLoaded: ((failure: LoadFailure | null) => void) | null = null
  /** Monotonic milliseconds; null while neither hello nor loaded is expected. */
  #deadline: number | null

  /** `deadline` is in monotonic milliseconds. */
  constructor(deadline: number) {
    const { promise, resolve } = Promise.withResolvers<Hello | null>()
    this.hello = promise
    this.#resolveHello = resolve
    this.#deadline = deadline
  }

  get isAwaited(): boolean {
    return this.#deadline !== null
  }

  isStalled(nowMillis: number): boolean {
    return this.#deadline !== null && nowMillis >= this.#deadline
  }

  /** Resolves with null once the code is loaded, or with the failure. */
  load(deadline: number): Promise<LoadFailure | null> {
    const { promise, resolve } = Promise.withResolvers<LoadFailure | null>()
    this.#resolveLoaded = resolve
    this.#deadline = deadline
    return promise
  }

  /** Handles the hello of the runner. Returns whether one was expected. */
  greet(hello: Hello): boolean {
    const resolve = this.#resolveHello
    this.#resolveHello = null
    this.#deadline = null
    resolve?.(hello)
    return resolve !== null
  }

  /** Handles the result of a load. Returns whether one was expected. */
  loaded(failure: LoadFailure | null): boolean {
    const resolve = this.#resolveLoaded
    this.#resolveLoaded = null
    this.#deadline = null
    resolve?.(failure)
    return resolve !== null
  }

  /** Resolves what is expected when the runner ends. */
  end(failure: RunnerFate | { readonly kind: 'lost' }): void {
    this.#resolveHello?.(null)
    this.#resolveLoaded?.(failure)
    this.#resolveHello = null
    this.#resolveLoaded = null
  }
}
