/**
 * Standard error of the server, the way out of its log. What cannot be written is told to whoever
 * wrote it and never raised: raised, it would be a mistake, which is logged, which fails.
 */

/** Characters that wait for a slow reader; what comes then is lost, so memory stays bounded. */
const WAITING_MAX = 1024 * 1024

export class Output {
  readonly #stream: NodeJS.WriteStream
  #waiting = 0

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    // Each write is told of its own failure. The stream goes on: a disk has space again some time.
    stream.on('error', () => undefined)
  }

  /** Does not wait for it. Calls `onLost` where it cannot be written. */
  readonly write = (text: string, onLost?: () => void): void => {
    if (this.#waiting >= WAITING_MAX) {
      onLost?.()
      return
    }
    this.#waiting += text.length
    this.#stream.write(text, (error) => {
      this.#waiting -= text.length
      if (error) onLost?.()
    })
  }
}
