/**
 * Requests of the logged-in operator. Tokens are refreshed under the lock of the profile, after the
 * file is read again, and are durable before they are used: parallel processes adopt each other's
 * tokens and never send a consumed refresh token.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { formatTimestamp } from '../../value/plain.ts'
import { Secret } from '../../value/secret.ts'
import { BUILD_VERSION, compareVersions } from '../../value/version.ts'
import type { Login } from '../../wire/identity/auth.ts'
import { refreshSession } from '../../wire/operations/identity/auth.ts'
import { type ManagementOperation, VERSION_HEADER } from '../../wire/operations/operation.ts'
import type { Context } from '../contexts.ts'
import { type Explanation, explained, explanation, isReported } from '../explanations.ts'
import {
  type AnyInput,
  anyRequestOf,
  type CallArguments,
  type OperationRequest,
  type ReplyOf,
  requestOf,
} from '../requests/operation-requests.ts'
import {
  type Call,
  type OnBytes,
  type OnHead,
  type OnLine,
  send,
  sendForBytes,
  sendForLines,
  sendFromStream,
} from '../requests/requests.ts'
import { isAccessToken, isRefreshToken, type Profile, ProfileStore } from './profiles.ts'

/** An access token that expires within this time is refreshed before the request. */
export const EXPIRY_MARGIN_MICROS = 30_000_000n
/** Less than LOCK_WAIT_MS_MAX, so that other processes wait longer than a refresh takes. */
const REFRESH_DEADLINE_MS = 20_000

/** Commands that list what a violation of PRODUCT_NOT_FOUND names. */
const LISTS: Readonly<Record<string, string>> = {
  environment: 'svc resources',
  releaseId: 'svc releases list',
  targetReleaseId: 'svc releases list',
  channel: 'svc status',
  against: 'svc status',
  target: 'svc status',
  name: 'svc config list',
  clientId: 'svc clients list',
  credentialId: 'svc credentials list --client ID',
  bucketId: 'svc buckets list',
  storageKeyId: 'svc buckets keys list NAME',
  key: 'svc files list',
}

function newerServer(version: string): string {
  const difference = `The server is svc ${version}, newer than this svc ${BUILD_VERSION}.`
  return `${difference} Install its version to use all of it.`
}

function olderServer(version: string | null): string {
  const server = version === null ? 'older' : `svc ${version}, older`
  const difference = `The server is ${server} than this svc ${BUILD_VERSION}.`
  return `${difference} What is new in this svc fails there: upgrade the server.`
}

/** The explanation of an upload that began with a token that was replaced meanwhile. */
const RENEWED = explanation({ next: 'Send it again: the session was renewed.' })

/** Paths of the authentication origin: sessions and resources. */
const AUTHENTICATION_BASE = '/v1/auth/'

export interface LoginOrigins {
  readonly authenticationOrigin: string
  readonly managementOrigin: string
}

/** Returns the profile of a login. Throws CLIENT_RESPONSE_INVALID for malformed tokens. */
export function profileOf(login: Login, origins: LoginOrigins): Profile {
  const { accessToken, refreshToken } = login
  if (!isAccessToken(accessToken) || !(refreshToken === null || isRefreshToken(refreshToken))) {
    throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'The tokens are malformed.' })
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

/** The storage of the tokens of a session. */
export interface SessionStore {
  /** Returns the profile that a request begins with: `known`, unless it may be outdated. */
  newest(known: Profile): Promise<Profile>
  /** `ProfileStore.change`. */
  change<T>(signal: AbortSignal, work: (profile: Profile | null) => Promise<T>): Promise<T>
  /** Stores refreshed tokens. Called inside `change` only. */
  write(profile: Profile): void
  /**
   * Replaces the tokens of a session that has no refresh token, in place of `change`. Called where
   * the server rejects those of `stale`.
   */
  renew?(stale: Profile): Promise<Profile>
}

export class OperatorSession {
  readonly #context: Context
  readonly #store: SessionStore
  #profile: Profile

  constructor(context: Context, store: SessionStore, profile: Profile) {
    this.#context = context
    this.#store = store
    this.#profile = profile
  }

  /** Opens the stored session. Throws CLIENT_NOT_LOGGED_IN, CLIENT_CREDENTIALS_INVALID. */
  static async open(context: Context): Promise<OperatorSession> {
    const store = new ProfileStore(context)
    const profile = await store.read()
    if (profile === null) throw new Fault('CLIENT_NOT_LOGGED_IN')
    return new OperatorSession(context, store, profile)
  }

  get profile(): Profile {
    return this.#profile
  }

  /** Returns the profile that the next request begins with. Throws what the store does. */
  async newest(): Promise<Profile> {
    this.#profile = await this.#store.newest(this.#profile)
    return this.#profile
  }

  /** Sends the request of an operation. Throws what `send` throws, with explanations. */
  call<O extends ManagementOperation>(
    operation: O,
    ...input: CallArguments<O>
  ): Promise<ReplyOf<O>> {
    return this.anyCall(operation, input[0] as AnyInput | undefined)
  }

  /** Does the work of `call` for callers that have checked the types. */
  anyCall<O extends ManagementOperation>(
    operation: O,
    input: AnyInput | undefined,
  ): Promise<ReplyOf<O>> {
    const request = anyRequestOf(operation, input) as OperationRequest<ReplyOf<O>>
    return this.#request(request, (call) => send(this.#context, call))
  }

  /** Reads the lines of a stream until it ends, for callers that have checked the types. */
  anyLines(operation: ManagementOperation, onLine: OnLine, input: AnyInput): Promise<void> {
    const request = anyRequestOf(operation, input)
    return this.#request(request, (call) => sendForLines(this.#context, call, onLine))
  }

  /** Reads the bytes of a response in their order, for callers that have checked the types. */
  anyBytes(
    operation: ManagementOperation,
    onBytes: OnBytes,
    input: AnyInput,
    onHead?: OnHead,
  ): Promise<void> {
    const request = anyRequestOf(operation, input)
    return this.#request(request, (call) => sendForBytes(this.#context, call, onBytes, onHead))
  }

  /**
   * Sends a body of `length` bytes as the server reads it, for callers that have checked the types.
   * Nothing is repeated: a token that the server rejects is replaced for the next request.
   */
  anyUpload(operation: ManagementOperation, input: AnyInput, length: number): Promise<unknown> {
    const headers = { ...input.headers, 'content-length': String(length) }
    const request = anyRequestOf(operation, { ...input, headers })
    let isSent = false
    return this.#request(request, (call) => {
      if (isSent) throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { cause: RENEWED })
      isSent = true
      return sendFromStream(this.#context, call)
    })
  }

  /** Sends a request by `sending`, which gets it with origin and token. */
  async #request<T, R>(
    { subjects = {}, ...request }: OperationRequest<T>,
    sending: (call: Call<T>) => Promise<R>,
  ): Promise<R> {
    const { path } = request
    const isOfSessions = path.startsWith(AUTHENTICATION_BASE)
    const onHeaders = this.#compareVersions
    try {
      return await this.#authenticated(
        ({ authenticationOrigin, managementOrigin, accessToken: bearer }) => {
          const origin = isOfSessions ? authenticationOrigin : managementOrigin
          return sending({ ...request, origin, bearer, onHeaders })
        },
      )
    } catch (error) {
      throw isFault(error) && isReported(error) ? this.#explained(error, path, subjects) : error
    }
  }

  /** Remarks that the server is older or newer. Other programs that answer here name no request. */
  readonly #compareVersions = (headers: Headers): void => {
    if (!headers.has('x-service-request-id')) return
    const server = headers.get(VERSION_HEADER)
    const difference = compareVersions(server)
    if (difference === 'newer') this.#context.remark(newerServer(server!))
    if (difference === 'older') this.#context.remark(olderServer(server))
  }

  /** Adds the operator and the Environment of the path, which the server does not repeat. */
  #explained(fault: Fault, path: string, subjects: Explanation['subjects']): Fault {
    const environment = /\/environments\/(env_[0-9A-Z]+)/.exec(path)?.[1]
    const named = { ...(environment !== undefined && { environment }), ...subjects }
    if (fault.code === 'PRODUCT_NOT_FOUND') {
      const list = LISTS[fault.violations[0]?.path ?? '']
      const next = list === undefined ? null : `Run \`${list}\` to see what exists.`
      return explained(fault, { next, subjects: named })
    }
    if (fault.code !== 'PLATFORM_ACCESS_DENIED') return explained(fault, { subjects: named })
    const scope = subjects.scope ?? environment
    const where = scope === undefined ? '' : `, the scope ${scope}`
    const detail = `The operator is ${this.#profile.operatorName}${where}.`
    return explained(fault, { detail, subjects: named })
  }

  /** Refreshes the token where it ends soon, or once where the server rejects it. */
  async #authenticated<T>(request: (profile: Profile) => Promise<T>): Promise<T> {
    let refreshed = false
    await this.newest()
    if (this.#endsSoon()) refreshed = await this.#refresh()
    for (;;) {
      try {
        return await request(this.#profile)
      } catch (error) {
        // A rejected request had no effect, so even a change may be sent again.
        if (!isFault(error, 'PLATFORM_AUTHENTICATION_FAILED') || refreshed) throw error
        refreshed = await this.#refresh()
      }
    }
  }

  /** Returns false without a refresh token: the access token then serves to its last moment. */
  #endsSoon(): boolean {
    const now = this.#context.environment.system.nowMicros()
    const { accessExpiresAtMicros, refreshToken } = this.#profile
    return accessExpiresAtMicros - now < (refreshToken === null ? 0n : EXPIRY_MARGIN_MICROS)
  }

  /** Returns true if this process refreshed; false if it adopted the tokens of another one. */
  async #refresh(): Promise<boolean> {
    const stale = this.#profile
    if (this.#store.renew !== undefined) {
      this.#profile = await this.#store.renew(stale)
      return true
    }
    return this.#context.uninterrupted(
      this.#store.change(this.#context.signal, async (stored) => {
        if (stored === null) throw new Fault('CLIENT_NOT_LOGGED_IN')
        requireSameOrigins(stale, stored)
        if (stored.accessToken.reveal() !== stale.accessToken.reveal()) {
          this.#profile = stored
          return false
        }
        if (stored.refreshToken === null) throw sessionOver(stored)
        this.#profile = await this.#exchange(stored, stored.refreshToken)
        return true
      }),
    )
  }

  /** Exchanges the refresh token. It is not interrupted: a lost response loses the session. */
  async #exchange(stored: Profile, refreshToken: Secret): Promise<Profile> {
    const login = await send(
      { environment: this.#context.environment, signal: new AbortController().signal },
      {
        ...requestOf(refreshSession, { body: { refreshToken: refreshToken.reveal() } }),
        origin: stored.authenticationOrigin,
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

function sessionOver({ accessExpiresAtMicros }: Profile): Fault {
  const at = formatTimestamp(accessExpiresAtMicros)
  return new Fault('CLIENT_NOT_LOGGED_IN', {
    detail:
      `The session ended at ${at}, or was revoked, and cannot be refreshed. A workload logs in ` +
      'again: `svc login --url URL --oidc-token-env VAR` with a new token of the platform. A ' +
      'derived session is derived again: `svc sessions derive`.',
  })
}

/** Throws CLIENT_ORIGIN_MISMATCH if another login has replaced the profile meanwhile. */
function requireSameOrigins(a: LoginOrigins, b: LoginOrigins): void {
  const same =
    a.authenticationOrigin === b.authenticationOrigin && a.managementOrigin === b.managementOrigin
  if (!same) {
    throw new Fault('CLIENT_ORIGIN_MISMATCH', {
      detail: 'Another login replaced the session while this command ran.',
    })
  }
}
