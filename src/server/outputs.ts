/**
 * Standard output and standard error of the server; the log is written to standard error. A failed
 * write is returned to its caller and never thrown: a thrown failure would be logged, which fails
 * again.
 */

/** Characters that wait for a slow reader; what comes then is lost, so memory stays bounded. */
const WAITING_MAX = 1024 * 1024
/** How long `flushed` waits for such a reader. */
const FLUSH_MILLIS = 1_000

export class Output {
  readonly #stream: NodeJS.WriteStream
  #waiting = 0
  /** The texts of this turn of the event loop, and the functions to call if they are lost. */
  #gathered = ''
  #losses: (() => void)[] = []
  #lost = false
  #onFlushed: (() => void) | null = null

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    // Each write is told of its own failure. The stream goes on: a disk has space again some time.
    stream.on('error', () => undefined)
  }

  /** Whether anything could not be written. */
  get lost(): boolean {
    return this.#lost
  }

  /**
   * Does not wait for it. Calls `onLost` where it cannot be written. The texts of one turn of the
   * event loop are one write, since each write costs as much as making a record.
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

  /** Resolves when everything is written, or lost, or was not read for a second. */
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
