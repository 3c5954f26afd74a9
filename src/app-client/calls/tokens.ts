/** Gets the functional token from the hook of the application. */
import { clientError } from '../errors.ts'

/**
 * Returns the current functional token, or null without one. `refresh` is true if the server has
 * rejected the last token or if it expires soon: the hook then returns a new one.
 */
export type TokenHook = (request: {
  readonly refresh: boolean
}) => string | null | Promise<string | null>

export class Tokens {
  readonly #hook: TokenHook | undefined
  #refreshing: Promise<string | null> | null = null

  constructor(hook: TokenHook | undefined) {
    this.#hook = hook
  }

  get canRefresh(): boolean {
    return this.#hook !== undefined
  }

  current(): Promise<string | null> {
    return this.#refreshing ?? this.#ask(false)
  }

  /** Gets a new token. Concurrent requests share one call of the hook. */
  refresh(): Promise<string | null> {
    this.#refreshing ??= this.#ask(true).finally(() => {
      this.#refreshing = null
    })
    return this.#refreshing
  }

  async #ask(refresh: boolean): Promise<string | null> {
    try {
      return (await this.#hook?.({ refresh })) ?? null
    } catch (cause) {
      const message = 'The token hook of the application failed.'
      throw clientError('FUNCTIONAL_TOKEN_REQUIRED', message, { cause })
    }
  }
}
