/** Work of which only so much goes on at one time; the rest waits in the order in which it came. */
import { TransientMap } from '../../value/memory/transient-map.ts'

export class Slots {
  #free: number
  /** Those that wait, each with what gives it its turn. */
  readonly #waiting = new TransientMap<object, () => void>()

  constructor(most: number) {
    this.#free = most
  }

  /** Throws the reason of the signal where nobody wants the work any more before its turn. */
  async use<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await this.#turn(signal)
    try {
      signal.throwIfAborted()
      return await work()
    } finally {
      this.#next()
    }
  }

  /** Whoever leaves takes along what its work holds, such as the body of a request. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const place = {}
      const leave = () => {
        if (this.#waiting.delete(place)) reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.set(place, () => {
        signal.removeEventListener('abort', leave)
        resolve()
      })
    })
  }

  #next(): void {
    for (const [place, begin] of this.#waiting) {
      this.#waiting.delete(place)
      begin()
      return
    }
    this.#free += 1
  }
}
