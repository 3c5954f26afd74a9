/** What a runner must say in time: that it runs, then that it holds its Release. */
import type { LoadFailure, RunnerFate } from './outcomes.ts'
import type { Hello } from './ports.ts'

export class RunnerStart {
  /** Null where it ended before it said anything. */
  readonly hello: Promise<Hello | null>
  #sayHello: ((hello: Hello | null) => void) | null
  #sayLoaded: ((failure: LoadFailure | null) => void) | null = null
  /** Until when it must have answered; null while nothing of the kind is awaited. */
  #answerBy: number | null

  /** In monotonic milliseconds. */
  constructor(answerBy: number) {
    const { promise, resolve } = Promise.withResolvers<Hello | null>()
    this.hello = promise
    this.#sayHello = resolve
    this.#answerBy = answerBy
  }

  get isAwaited(): boolean {
    return this.#answerBy !== null
  }

  isStalled(nowMillis: number): boolean {
    return this.#answerBy !== null && nowMillis >= this.#answerBy
  }

  /** Null when the code was loaded, else why not. */
  load(answerBy: number): Promise<LoadFailure | null> {
    const { promise, resolve } = Promise.withResolvers<LoadFailure | null>()
    this.#sayLoaded = resolve
    this.#answerBy = answerBy
    return promise
  }

  /** Whether that was awaited. */
  greet(hello: Hello): boolean {
    const answer = this.#sayHello
    this.#sayHello = null
    this.#answerBy = null
    answer?.(hello)
    return answer !== null
  }

  /** The same. */
  loaded(failure: LoadFailure | null): boolean {
    const answer = this.#sayLoaded
    this.#sayLoaded = null
    this.#answerBy = null
    answer?.(failure)
    return answer !== null
  }

  /** Whoever waits is told. */
  end(failure: RunnerFate | { readonly kind: 'lost' }): void {
    this.#sayHello?.(null)
    this.#sayLoaded?.(failure)
    this.#sayHello = null
    this.#sayLoaded = null
  }
}
