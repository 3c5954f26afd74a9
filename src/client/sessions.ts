/**
 * Requests of the logged-in operator. A token is refreshed under the lock of the profile, after
 * the file was read again, and is on the disk before it is used: parallel processes adopt each
 * other's tokens and never present one that is used up.
 */
import { Fault, isFault } from '../errors/fault.ts'
import { formatTimestamp } from '../value/plain.ts'
import { Secret } from '../value/secret.ts'
import { Login } from '../wire/auth.ts'
import type { Context } from './contexts.ts'
import { isAccessToken, isRefreshToken, type Profile, ProfileStore } from './profiles.ts'
import { type Call, send, sendForLines } from './requests.ts'

/** An access token that ends within this time is refreshed before it is sent. */
const EXPIRY_MARGIN_MICROS = 30_000_000n
/** Below LOCK_WAIT_MS_MAX, so that whoever waits outlives the refresh. */
const REFRESH_DEADLINE_MS = 20_000

export type SessionCall<T> = Omit<Call<T>, 'origin' | 'bearer'>

export interface LoginOrigins {
  readonly authenticationOrigin: string
  readonly managementOrigin: string
}

/** Faults: CLIENT_RESPONSE_INVALID for tokens that the profile could not be read back with. */
export function profileOf(login: Login, origins: LoginOrigins): Profile {
  const { accessToken, refreshToken } = login
  if (!isAccessToken(accessToken) || !(refreshToken === null || isRefreshToken(refreshToken))) {
    throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'The tokens have another form.' })
  }
  return {
    authenticationOrigin: origins.authenticationOrigin,
    managementOrigin: origins.managementOrigin,
    operatorId: login.operator.operatorId,
    operatorName: login.operator.operatorName,
    sessionId: login.session.sessionId,
    accessToken: new Secret(accessToken),
    accessExpiresAtMicros: BigInt(login.session.accessExpiresAtMicros),
    refreshToken: refreshToken === null ? null : new Secret(refreshToken),
    refreshExpiresAtMicros: BigInt(login.session.refreshExpiresAtMicros),
  }
}

export class OperatorSession {
  readonly #context: Context
  readonly #store: ProfileStore
  #profile: Profile

  private constructor(context: Context, store: ProfileStore, profile: Profile) {
    this.#context = context
    this.#store = store
    this.#profile = profile
  }

  /** Faults: CLIENT_NOT_LOGGED_IN, CLIENT_CREDENTIALS_INVALID. */
  static async open(context: Context): Promise<OperatorSession> {
    const store = new ProfileStore(context)
    const profile = await store.read()
    if (profile === null) throw new Fault('CLIENT_NOT_LOGGED_IN')
    return new OperatorSession(context, store, profile)
  }

  get profile(): Profile {
    return this.#profile
  }

  /** Identity routes: sessions and resources. */
  authentication<T>(call: SessionCall<T>): Promise<T> {
    return this.#send(call, this.#profile.authenticationOrigin)
  }

  /** Routes of the Product Environment. */
  management<T>(call: SessionCall<T>): Promise<T> {
    return this.#send(call, this.#profile.managementOrigin)
  }

  /** Reads lines of a stream of the Product Environment until it ends. */
  lines(path: string, onLine: (line: string) => Promise<void>): Promise<void> {
    const origin = this.#profile.managementOrigin
    return this.#authenticated((bearer) =>
      sendForLines(this.#context, { method: 'GET', origin, path, bearer }, onLine),
    )
  }

  #send<T>(call: SessionCall<T>, origin: string): Promise<T> {
    return this.#authenticated((bearer) => send(this.#context, { ...call, origin, bearer }))
  }

  /** Refreshes the token where it ends soon, or once where the server rejects it. */
  async #authenticated<T>(request: (bearer: Secret) => Promise<T>): Promise<T> {
    let refreshed = false
    if (this.#endsSoon()) refreshed = await this.#refresh()
    for (;;) {
      try {
        return await request(this.#profile.accessToken)
      } catch (error) {
        // A refused request did nothing, so even a change may be sent again.
        if (!isFault(error, 'PLATFORM_AUTHENTICATION_FAILED') || refreshed) throw error
        refreshed = await this.#refresh()
      }
    }
  }

  /** Without a refresh token the access token serves to its last moment. */
  #endsSoon(): boolean {
    const now = this.#context.environment.system.nowMicros()
    const { accessExpiresAtMicros, refreshToken } = this.#profile
    return accessExpiresAtMicros - now < (refreshToken === null ? 0n : EXPIRY_MARGIN_MICROS)
  }

  /** True where this process refreshed; false where it adopted what another one had stored. */
  async #refresh(): Promise<boolean> {
    const stale = this.#profile
    return this.#context.uninterrupted(
      this.#store.change(this.#context.signal, async (stored) => {
        if (stored === null) throw new Fault('CLIENT_NOT_LOGGED_IN')
        requireSameOrigins(stale, stored)
        if (stored.accessToken.reveal() !== stale.accessToken.reveal()) {
          this.#profile = stored
          return false
        }
        if (stored.refreshToken === null) throw workloadSessionOver(stored)
        this.#profile = await this.#exchange(stored, stored.refreshToken)
        return true
      }),
    )
  }

  /** Never interrupted: a lost answer would lose the session with it. */
  async #exchange(stored: Profile, refreshToken: Secret): Promise<Profile> {
    const login = await send(
      { environment: this.#context.environment, signal: new AbortController().signal },
      {
        method: 'POST',
        origin: stored.authenticationOrigin,
        path: '/v1/auth/refresh',
        body: { refreshToken: refreshToken.reveal() },
        reply: Login,
        replay: 'unsafe',
        deadlineMs: REFRESH_DEADLINE_MS,
      },
    )
    if (login.session.sessionId !== stored.sessionId) {
      throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'The refresh named another session.' })
    }
    const profile = profileOf(login, stored)
    this.#store.write(profile)
    return profile
  }
}

function workloadSessionOver({ accessExpiresAtMicros }: Profile): Fault {
  const at = formatTimestamp(accessExpiresAtMicros)
  return new Fault('CLIENT_NOT_LOGGED_IN', {
    detail:
      `The session of this workload ended at ${at}, or was revoked, and cannot be refreshed. Log ` +
      'in again: `svc login --url URL --oidc-token-env VAR` with a new token of the platform.',
  })
}

/** Another `svc login` may have replaced the profile meanwhile: its tokens belong elsewhere. */
function requireSameOrigins(a: LoginOrigins, b: LoginOrigins): void {
  const same =
    a.authenticationOrigin === b.authenticationOrigin && a.managementOrigin === b.managementOrigin
  if (!same) {
    throw new Fault('CLIENT_ORIGIN_MISMATCH', {
      detail: 'Another login replaced the session while this command ran.',
    })
  }
}
