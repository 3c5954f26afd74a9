/** The tokens of one signed-in user of an application, as its session gives them. */
import type { JwtIssuer } from './jwt-issuers.ts'

export class UserTokens {
  /** Seconds for which a new token is valid. */
  lifetimeSeconds = 3_600
  /** While it is true, there is no token. */
  isDown = false
  /** Number of tokens given because the last one was rejected or was about to expire. */
  refreshes = 0
  /** Unix milliseconds at which the last token ends. */
  expiresAtMillis = 0
  readonly #users: JwtIssuer
  #token: string | null = null

  constructor(users: JwtIssuer) {
    this.#users = users
  }

  /** Returns the current token or, with `refresh`, another one; null while there is none. */
  async give(refresh: boolean): Promise<string | null> {
    if (this.isDown) return null
    if (!refresh && this.#token !== null) return this.#token
    if (refresh) this.refreshes += 1
    const now = Date.now()
    const exp = Math.floor(now / 1000) + this.lifetimeSeconds
    this.expiresAtMillis = exp * 1000
    this.#token = await this.#users.sign(
      this.#users.claims(now, { exp, jti: String(this.refreshes) }),
    )
    return this.#token
  }
}
