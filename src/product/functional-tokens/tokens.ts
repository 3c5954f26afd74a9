/**
 * Functional tokens of one Environment: guests of its own and JWTs of its providers. A token that
 * was verified is remembered, because callers send the same one with every call and a signature
 * costs fifty times what the rest of the gateway's checks do.
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
  /** Unix milliseconds from which on the token is refused. */
  readonly expiresAtMillis: number
}

interface Known {
  readonly principal: VerifiedPrincipal
  readonly isTrusted: () => boolean | Promise<boolean>
}

const KNOWN_MAX = 10_000
/** Longer ones are verified every time, so that what is remembered stays small. */
const KNOWN_CHARACTERS_MAX = 4_096

export interface FunctionalTokensOptions extends GuestsOptions {
  readonly providers: JwtProviders
  readonly system: Pick<System, 'nowMillis'>
}

export class FunctionalTokens {
  readonly #options: FunctionalTokensOptions
  /** By their text, which callers send with every request; the least recently used first. */
  readonly #known = new Map<string, Known>()

  constructor(options: FunctionalTokensOptions) {
    this.#options = options
  }

  /** The bearer of a new guest. */
  issueGuest(request: GuestRequest): string {
    return issueGuest(this.#options, request)
  }

  /** Whether the token was verified before: its holder guesses nothing, even past its end. */
  knows(token: string): boolean {
    return this.#known.has(token)
  }

  /** Throws FUNCTIONAL_TOKEN_INVALID, and UNAVAILABLE where a provider's keys are not known. */
  async verify(token: string): Promise<VerifiedPrincipal> {
    const known = this.#known.get(token)
    if (known !== undefined) {
      if (known.principal.expiresAtMillis <= this.#options.system.nowMillis()) {
        throw invalid(new TokenRejection('expired'))
      }
      if (await known.isTrusted()) {
        this.#keep(token, known)
        return known.principal
      }
      this.#known.delete(token)
    }
    const verified = await this.#verify(token)
    this.#keep(token, verified)
    return verified.principal
  }

  async #verify(token: string): Promise<Known> {
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

  #keep(token: string, known: Known): void {
    if (token.length > KNOWN_CHARACTERS_MAX) return
    this.#known.delete(token)
    this.#known.set(token, known)
    if (this.#known.size <= KNOWN_MAX) return
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest)
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

/** Makes a Fault whose detail names the check that failed, and nothing of the token. */
function invalid({ message }: TokenRejection): Fault {
  return new Fault('FUNCTIONAL_TOKEN_INVALID', { detail: `functional token: ${message}` })
}
