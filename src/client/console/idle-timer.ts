/** Ends the console after hours without use. */

/** @limit The console: time without use after which it ends */
export const IDLE_MS = 4 * 60 * 60 * 1000

export class IdleTimer {
  readonly #idleMs: number
  readonly #over: Promise<void>
  #end: () => void = () => {}
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(idleMs: number = IDLE_MS) {
    this.#idleMs = idleMs
    this.#over = new Promise((resolve) => {
      this.#end = resolve
    })
    this.use()
  }

  /** Begins the time anew. */
  use(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#end(), this.#idleMs)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#end()
  }

  /** Resolves after the time without use, after `end`, and when the signal fires. */
  whenOver(signal: AbortSignal): Promise<void> {
    const end = (): void => this.end()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    return this.#over.finally(() => signal.removeEventListener('abort', end))
  }
}
