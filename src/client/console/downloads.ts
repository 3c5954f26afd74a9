/**
 * Downloads that wait for the browser. A call of the page begins one and learns a name, which the
 * browser then opens once, as a file to save: a script cannot make that request, and a response of
 * a script would have to be in the memory of the page.
 */
import type { ServerResponse } from 'node:http'

/** @limit The console: time in which the browser asks for a download that was begun */
export const DOWNLOAD_WAIT_MS = 60_000

export interface Offer {
  /** A single-use credential, together with the cookie. */
  readonly name: string
  /** The response to write to; null if the browser did not ask in time. */
  readonly taken: Promise<ServerResponse | null>
  /** Makes the name void. */
  close(): void
}

export class Downloads {
  readonly #newName: () => string
  readonly #waitMs: number
  readonly #waiting = new Map<string, (response: ServerResponse | null) => void>()

  constructor(newName: () => string, waitMs: number = DOWNLOAD_WAIT_MS) {
    this.#newName = newName
    this.#waitMs = waitMs
  }

  offer(): Offer {
    const name = this.#newName()
    const { promise, resolve } = Promise.withResolvers<ServerResponse | null>()
    const end = (response: ServerResponse | null): void => {
      clearTimeout(timer)
      this.#waiting.delete(name)
      resolve(response)
    }
    const timer = setTimeout(() => end(null), this.#waitMs)
    this.#waiting.set(name, end)
    return { name, taken: promise, close: () => end(null) }
  }

  /** Gives the download of a name its response; returns false for an unknown or used name. */
  take(name: string, response: ServerResponse): boolean {
    const end = this.#waiting.get(name)
    end?.(response)
    return end !== undefined
  }

  /** Makes every name void. */
  clear(): void {
    for (const end of [...this.#waiting.values()]) end(null)
  }
}
