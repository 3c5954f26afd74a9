/** AbortController, AbortSignal and the errors that they end with. */

type Listener = ((event: unknown) => unknown) | { handleEvent(event: unknown): unknown }

/** What is told of the one event that there is. */
export function makeAbortListeners() {
  return class AbortListeners {
    onabort: ((event: unknown) => unknown) | null = null
    readonly #listeners = new Set<Listener>()

    addEventListener(type: string, listener: Listener): void {
      if (type === 'abort' && listener) this.#listeners.add(listener)
    }

    removeEventListener(type: string, listener: Listener): void {
      if (type === 'abort') this.#listeners.delete(listener)
    }

    static tell(target: AbortListeners): void {
      const event = Object.freeze({ type: 'abort', target })
      const failures: unknown[] = []
      // Each is told, whatever those before it throw: one of them is a request that must end.
      const hear = (listener: Listener): void => {
        try {
          if (typeof listener === 'function') listener(event)
          else listener.handleEvent(event)
        } catch (thrown) {
          failures.push(thrown)
        }
      }
      const { onabort } = target
      if (onabort) hear((it) => Reflect.apply(onabort, target, [it]))
      for (const listener of [...target.#listeners]) hear(listener)
      target.#listeners.clear()
      if (failures.length > 0) throw failures[0]
    }
  }
}

/** An error that is known by its name. */
export function makeDomException() {
  const { defineProperties } = Object
  // The numbers that names had before there were names; most never had one.
  const codes: Readonly<Record<string, number>> = Object.assign(Object.create(null), {
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

  return class DOMException extends Error {
    declare readonly code: number

    constructor(message: unknown = '', options: unknown = 'Error') {
      const { name = 'Error', cause } = Object(options) as { name?: unknown; cause?: unknown }
      const own = options instanceof Object
      super(`${message}`, own && 'cause' in options ? { cause } : undefined)
      const value = `${own ? name : options}`
      defineProperties(this, {
        name: { value, writable: true, configurable: true },
        code: { value: codes[value] ?? 0, writable: true, configurable: true },
      })
    }
  }
}

/** `after` runs a task of the call that runs; null where there are no timers. */
export function makeAborts(
  AbortListeners: ReturnType<typeof makeAbortListeners>,
  DOMException: ReturnType<typeof makeDomException>,
  after: ((millis: unknown, task: () => void) => void) | null,
) {
  const { tell } = AbortListeners
  const made = Symbol('made here')
  const aborted = () => new DOMException('The operation was aborted.', 'AbortError')
  let abort: (signal: AbortSignal, reason?: unknown) => AbortSignal

  class AbortSignal extends AbortListeners {
    #aborted = false
    #reason: unknown

    static {
      abort = (signal, reason) => {
        if (signal.#aborted) return signal
        signal.#aborted = true
        signal.#reason = reason === undefined ? aborted() : reason
        tell(signal)
        return signal
      }
    }

    constructor(token?: unknown) {
      super()
      if (token !== made) throw new TypeError('new AbortSignal: use an AbortController')
    }

    static abort(reason?: unknown): AbortSignal {
      return abort(new AbortSignal(made), reason)
    }

    static timeout(millis: unknown): AbortSignal {
      if (after === null) {
        throw new TypeError('AbortSignal.timeout: Queries and Mutations have no timers')
      }
      const signal = new AbortSignal(made)
      const reason = new DOMException('The operation timed out.', 'TimeoutError')
      after(millis, () => void abort(signal, reason))
      return signal
    }

    static any(signals: Iterable<AbortSignal>): AbortSignal {
      const any = new AbortSignal(made)
      for (const signal of signals) {
        if (signal.aborted) abort(any, signal.reason)
        else signal.addEventListener('abort', () => abort(any, signal.reason))
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

  return { AbortSignal, newSignal: () => new AbortSignal(made), abort: abort! }
}

export function makeAbortController({ newSignal, abort }: ReturnType<typeof makeAborts>) {
  return class AbortController {
    readonly signal = newSignal()

    abort(reason?: unknown): void {
      abort(this.signal, reason)
    }
  }
}
