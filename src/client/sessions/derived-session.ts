/**
 * Derived sessions of commands: a part of the operator's rights for a time, with a token that is
 * kept in memory only. The server ends such a session with the session that it was derived from.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import type { Capability, SessionPurpose } from '../../value/capabilities.ts'
import type { OperatorId } from '../../value/ids.ts'
import type { Scope } from '../../value/scope.ts'
import { deriveSession as derive, revokeSession } from '../../wire/operations/identity/sessions.ts'
import type { Context } from '../contexts.ts'
import { requestOf } from '../requests/operation-requests.ts'
import { send } from '../requests/requests.ts'
import type { Profile } from './profiles.ts'
import { EXPIRY_MARGIN_MICROS, OperatorSession, profileOf, type SessionStore } from './sessions.ts'

/** Seconds of a session that nothing names a lifetime for, which is replaced while it is used. */
const LIFETIME_SECONDS = 600
/** Milliseconds for the end of a session, which also ends by itself. */
const END_DEADLINE_MS = 5_000

export interface Derivation {
  /** Each is held by the operator at the scope. */
  readonly capabilities: readonly Capability[]
  readonly scope: Scope
  readonly purpose: SessionPurpose
  /** 1 to DERIVED_SECONDS_MAX; by default 10 minutes. */
  readonly lifetimeSeconds?: number
}

/** A derived session that a command uses. */
export interface DerivedSession {
  /**
   * Sends requests with the rights of the derivation, for `environmentCalls` and the like. A token
   * that is about to end, or that the server rejects, is replaced by that of another derivation.
   */
  readonly session: OperatorSession
  /**
   * Ends the session on the server, and rejects later requests with CLIENT_NOT_LOGGED_IN. Never
   * throws: where the server cannot be reached, the session ends with its lifetime.
   */
  end(): Promise<void>
}

/**
 * Derives a session from the operator's session. Throws what the request does: among others
 * PLATFORM_ACCESS_DENIED where the operator lacks a capability at the scope.
 */
export async function deriveSession(
  context: Context,
  parent: OperatorSession,
  derivation: Derivation,
): Promise<DerivedSession> {
  const store = new DerivedSessionStore(context, parent, derivation)
  const session = new OperatorSession(context, store, await store.newest())
  return { session, end: () => store.end() }
}

class DerivedSessionStore implements SessionStore {
  readonly #context: Context
  readonly #parent: OperatorSession
  readonly #derivation: Derivation
  readonly #operatorId: OperatorId
  #current: Profile | null = null
  /** Microseconds before the end of the current token from which on it is replaced. */
  #marginMicros = 0n
  /** The derivation that is in flight, which all requests share. */
  #pending: Promise<Profile> | null = null
  #ended = false

  constructor(context: Context, parent: OperatorSession, derivation: Derivation) {
    this.#context = context
    this.#parent = parent
    this.#derivation = derivation
    this.#operatorId = parent.profile.operatorId
  }

  async newest(): Promise<Profile> {
    // A `svc dev` that was started again has another address, and none of the derived sessions.
    const { authenticationOrigin } = await this.#parent.newest()
    const current = this.#current
    if (this.#ended || current === null) return this.#derive()
    if (current.authenticationOrigin !== authenticationOrigin) return this.#derive()
    const remains = current.accessExpiresAtMicros - this.#nowMicros()
    return remains < this.#marginMicros ? this.#derive() : current
  }

  async renew(stale: Profile): Promise<Profile> {
    const current = this.#current
    // Another request has replaced the token meanwhile.
    if (!this.#ended && current !== null && current.sessionId !== stale.sessionId) return current
    return this.#derive()
  }

  /** Does nothing more than `work`: the session has no refresh token that a file keeps. */
  async change<T>(_: AbortSignal, work: (profile: Profile | null) => Promise<T>): Promise<T> {
    return work(this.#current)
  }

  write(): void {}

  async end(): Promise<void> {
    this.#ended = true
    await this.#pending?.catch(() => undefined)
    const ending = this.#current
    this.#current = null
    if (ending !== null) await this.#revoke(ending)
  }

  #derive(): Promise<Profile> {
    if (this.#ended) {
      return Promise.reject(new Fault('CLIENT_NOT_LOGGED_IN', { detail: 'The session has ended.' }))
    }
    this.#pending ??= this.#request().finally(() => {
      this.#pending = null
    })
    return this.#pending
  }

  async #request(): Promise<Profile> {
    const { capabilities, scope, purpose, lifetimeSeconds = LIFETIME_SECONDS } = this.#derivation
    const body = { capabilities, scope, purpose, lifetimeSeconds }
    const login = await this.#parent.call(derive, { body })
    const profile = profileOf(login, this.#parent.profile)
    if (profile.operatorId !== this.#operatorId) {
      // Another login has replaced the stored session, and this command is not that operator's.
      await this.#revoke(profile)
      throw new Fault('CLIENT_NOT_LOGGED_IN', { detail: 'Another operator has logged in.' })
    }
    // The lifetime is short where the parent ends soon, or where the caller wants it.
    const lifetime = profile.accessExpiresAtMicros - this.#nowMicros()
    this.#marginMicros = lifetime / 4n < EXPIRY_MARGIN_MICROS ? lifetime / 4n : EXPIRY_MARGIN_MICROS
    this.#current = profile
    return profile
  }

  #nowMicros(): bigint {
    return this.#context.environment.system.nowMicros()
  }

  /** Revokes the session with its own token, even after an interrupt. */
  async #revoke({ sessionId, authenticationOrigin, accessToken }: Profile): Promise<void> {
    const { environment } = this.#context
    const revocation = send(
      { environment, signal: new AbortController().signal },
      {
        ...requestOf(revokeSession, { params: { sessionId } }),
        origin: authenticationOrigin,
        bearer: accessToken,
        deadlineMs: END_DEADLINE_MS,
      },
    )
    await revocation.catch((error: unknown) => {
      if (!isFault(error)) throw error
    })
  }
}
