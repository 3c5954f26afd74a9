/** AbortController, AbortSignal, and DOMException, the error that they end with. */
import { limits } from '../limits.ts'
import { startTimeout } from './timers.ts'

type Listener = ((event: unknown) => unknown) | { handleEvent(event: unknown): unknown }

/** Calls the listeners of the one event that there is, once. */
let dispatchAbort: (target: AbortListeners) => void

class AbortListeners {
  onabort: ((event: unknown) => unknown) | null = null
  readonly #listeners = new Set<Listener>()

  static {
    dispatchAbort = (target) => {
      const event = Object.freeze({ type: 'abort', target })
      const failures: unknown[] = []
      // Each is called, even if those before it throw: one of them ends a request.
      const call = (listener: Listener): void => {
        try {
          if (typeof listener === 'function') listener(event)
          else listener.handleEvent(event)
        } catch (thrown) {
          failures.push(thrown)
        }
      }
      const { onabort } = target
      if (onabort) call(() => Reflect.apply(onabort, target, [event]))
      for (const listener of [...target.#listeners]) call(listener)
      target.#listeners.clear()
      if (failures.length > 0) throw failures[0]
    }
  }

  addEventListener(type: string, listener: Listener): void {
    if (type === 'abort' && listener) this.#listeners.add(listener)
  }

  removeEventListener(type: string, listener: Listener): void {
    if (type === 'abort') this.#listeners.delete(listener)
  }
}

/** The numbers that names had before errors had names; most names never had one. */
const CODES: Readonly<Record<string, number>> = Object.assign(Object.create(null), {
  NotFoundError: 8,
  NotSupportedError: 9,
  InvalidStateError: 11,
  SyntaxError: 12,
  NetworkError: 19,
  AbortError: 20,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
})

/** An error that is identified by its name. */
export class DOMException extends Error {
  declare readonly code: number

  constructor(message: unknown = '', options: unknown = 'Error') {
    const { name = 'Error', cause } = Object(options) as { name?: unknown; cause?: unknown }
    const isObject = options instanceof Object
    super(`${message}`, isObject && 'cause' in options ? { cause } : undefined)
    const value = `${isObject ? name : options}`
    Object.defineProperties(this, {
      name: { value, writable: true, configurable: true },
      code: { value: CODES[value] ?? 0, writable: true, configurable: true },
    })
  }
}

/** Shown to the constructor by the code of this module alone. */
const internal = Symbol('internal')
let abortSignal: (signal: AbortSignal, reason?: unknown) => AbortSignal

export class AbortSignal extends AbortListeners {
  #aborted = false
  #reason: unknown

  static {
    abortSignal = (signal, reason) => {
      if (signal.#aborted) return signal
      signal.#aborted = true
      const otherwise = () => new DOMException('The operation was aborted.', 'AbortError')
      signal.#reason = reason === undefined ? otherwise() : reason
      dispatchAbort(signal)
      return signal
    }
  }

  constructor(token?: unknown) {
    super()
    if (token !== internal) throw new TypeError('new AbortSignal: use an AbortController')
  }

  static abort(reason?: unknown): AbortSignal {
    return abortSignal(new AbortSignal(internal), reason)
  }

  static timeout(millis: unknown): AbortSignal {
    if (!limits.actions) {
      throw new TypeError(
        'AbortSignal.timeout: Queries and Mutations have no timers; do it in an Action',
      )
    }
    const signal = new AbortSignal(internal)
    const reason = new DOMException('The operation timed out.', 'TimeoutError')
    startTimeout(millis, () => void abortSignal(signal, reason))
    return signal
  }

  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const any = new AbortSignal(internal)
    for (const signal of signals) {
      if (signal.aborted) abortSignal(any, signal.reason)
      else signal.addEventListener('abort', () => abortSignal(any, signal.reason))
    }
    return any
  }

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }
}

export class AbortController {
  readonly signal = new AbortSignal(internal)

  abort(reason?: unknown): void {
    abortSignal(this.signal, reason)
  }
}
