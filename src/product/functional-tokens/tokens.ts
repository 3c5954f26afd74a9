/**
 * Functional tokens of one Environment: its own guest tokens and JWTs of its providers. Verified
 * tokens are cached, because callers send the same one with every call and a signature costs fifty
 * times as much as all other checks of the gateway.
 */
import { Fault } from '../../errors/fault.ts'
import { TokenRejection } from '../../identity/jwt/rejections.ts'
import type { System } from '../../system/system.ts'
import { type FunctionalIdentity, type Principal, principalOf } from '../../value/identities.ts'
import {
  GUEST_PREFIX,
  type GuestRequest,
  type GuestsOptions,
  issueGuest,
  verifyGuest,
} from './guests.ts'
import { type JwtProviders, verifyJwt } from './providers.ts'

export interface VerifiedPrincipal extends Principal {
  /** Unix milliseconds at which the token expires. */
  readonly expiresAtMillis: number
}

interface VerifiedToken {
  readonly principal: VerifiedPrincipal
  /** Returns whether the key that signed the token is still trusted. */
  readonly isTrusted: () => boolean | Promise<boolean>
}

/** Maximum number of verified tokens in memory. The least recently used one is dropped. */
const VERIFIED_MAX = 10_000
/** Longer tokens are verified every time, which bounds the memory of the cache. */
const CACHED_CHARACTERS_MAX = 4_096

export interface FunctionalTokensOptions extends GuestsOptions {
  readonly providers: JwtProviders
  readonly system: Pick<System, 'nowMillis'>
}

export class FunctionalTokens {
  readonly #options: FunctionalTokensOptions
  /** Verified tokens by their text, the least recently used first. */
  readonly #verified = new Map<string, VerifiedToken>()

  constructor(options: FunctionalTokensOptions) {
    this.#options = options
  }

  /** Increases whenever the published keys of a provider were loaded. */
  get revision(): number {
    let revision = 0
    for (const { keys } of this.#options.providers.values()) revision += keys.revision
    return revision
  }

  /** Returns the token of a new guest. */
  issueGuest(request: GuestRequest): string {
    return issueGuest(this.#options, request)
  }

  /**
   * Returns whether the token was verified before. A caller with such a token does not guess, even
   * after the token expired.
   */
  knows(token: string): boolean {
    return this.#verified.has(token)
  }

  /**
   * Returns the principal of a token. Throws FUNCTIONAL_TOKEN_INVALID, and UNAVAILABLE if a
   * provider's keys cannot be loaded.
   */
  async verify(token: string): Promise<VerifiedPrincipal> {
    const cached = this.#verified.get(token)
    if (cached !== undefined) {
      if (cached.principal.expiresAtMillis <= this.#options.system.nowMillis()) {
        throw invalid(new TokenRejection('expired'))
      }
      if (await cached.isTrusted()) {
        this.#insert(token, cached)
        return cached.principal
      }
      this.#verified.delete(token)
    }
    const verified = await this.#verify(token)
    this.#insert(token, verified)
    return verified.principal
  }

  async #verify(token: string): Promise<VerifiedToken> {
    const { providers, system } = this.#options
    const nowMillis = system.nowMillis()
    try {
      if (!token.startsWith(GUEST_PREFIX)) {
        const { isTrusted, ...verified } = await verifyJwt(providers, token, nowMillis)
        return { principal: principal(verified), isTrusted }
      }
      const verified = verifyGuest(this.#options, token, nowMillis)
      return { principal: principal(verified), isTrusted: () => true }
    } catch (error) {
      throw error instanceof TokenRejection ? invalid(error) : error
    }
  }

  #insert(token: string, verified: VerifiedToken): void {
    if (token.length > CACHED_CHARACTERS_MAX) return
    this.#verified.delete(token)
    this.#verified.set(token, verified)
    if (this.#verified.size <= VERIFIED_MAX) return
    for (const oldest of this.#verified.keys()) {
      this.#verified.delete(oldest)
      return
    }
  }
}

function principal({
  identity,
  expiresAtMillis,
}: {
  readonly identity: FunctionalIdentity
  readonly expiresAtMillis: number
}): VerifiedPrincipal {
  const identityText = JSON.stringify(identity)
  return { kind: identity.kind, key: principalOf(identity), identityText, expiresAtMillis }
}

/** Makes a Fault whose detail names the failed check and repeats no part of the token. */
function invalid({ message }: TokenRejection): Fault {
  return new Fault('FUNCTIONAL_TOKEN_INVALID', { detail: `functional token: ${message}` })
}
