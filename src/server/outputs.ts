/**
 * Standard output and standard error of the server; the log is written to standard error. A failed
 * write is returned to its caller and never thrown: a thrown failure would be logged, which fails
 * again.
 */

/** Bound of the characters that wait for a slow reader. Later text is lost: memory is bounded. */
const WAITING_MAX = 1024 * 1024
/** Time limit of `flushed`, so that a log that is not read does not keep the server running. */
const FLUSH_MILLIS = 1_000

export class Output {
  readonly #stream: NodeJS.WriteStream
  #waiting = 0
  /** The texts of this turn of the event loop. `#losses` has the callbacks for their loss. */
  #gathered = ''
  #losses: (() => void)[] = []
  #lost = false
  #onFlushed: (() => void) | null = null

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    // The callback of each write reports its failure. The stream stays in use, since a full disk
    // may have space again later.
    stream.on('error', () => undefined)
  }

  /** True once any text was lost. */
  get lost(): boolean {
    return this.#lost
  }

  /**
   * Queues the text without waiting for the write. Calls `onLost` if the text cannot be written.
   * The texts of one turn of the event loop are one write, since a write costs as much as making a
   * log record.
   */
  readonly write = (text: string, onLost?: () => void): void => {
    const lose = (): void => {
      this.#lost = true
      onLost?.()
    }
    if (this.#waiting >= WAITING_MAX) {
      lose()
      return
    }
    this.#waiting += text.length
    if (this.#gathered === '') setImmediate(() => this.#send())
    this.#gathered += text
    this.#losses.push(lose)
  }

  /** Resolves when all text is written or lost, at the latest after FLUSH_MILLIS. */
  flushed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting === 0) resolve()
      this.#onFlushed = resolve
      setTimeout(resolve, FLUSH_MILLIS)
    })
  }

  #send(): void {
    const [text, losses] = [this.#gathered, this.#losses]
    if (text === '') return
    this.#gathered = ''
    this.#losses = []
    this.#stream.write(text, (error) => {
      this.#waiting -= text.length
      if (error) for (const lose of losses) lose()
      if (this.#waiting === 0) this.#onFlushed?.()
    })
  }
}
