/**
 * The sessions of `svc dev`: the one of its author, which is valid as long as the process runs, and
 * those that commands derive from it, with the rules of a server. They are in memory alone, so each
 * token is invalid once the process has ended.
 */
import { Fault } from '../../errors/fault.ts'
import { loginBody, sessionsBody } from '../../http/management/identity/fields.ts'
import { bind, type Route, type Sessions } from '../../http/management/route.ts'
import type { Actor, Grant } from '../../identity/actor.ts'
import { Credentials } from '../../identity/credentials.ts'
import {
  type DerivationInput,
  type DerivedSession,
  derivedSessionOf,
} from '../../identity/derived-sessions.ts'
import {
  type Login,
  type SessionPage,
  type SessionPageInput,
  toActor,
} from '../../identity/sessions.ts'
import type { System } from '../../system/system.ts'
import { LOCAL_CAPABILITIES } from '../../value/capabilities.ts'
import type { EnvironmentId, ProjectId, SessionId } from '../../value/ids.ts'
import { localAuthor } from '../../value/product-root.ts'
import { environmentScope } from '../../value/scope.ts'
import type { Secret } from '../../value/secret.ts'
import { PAGE_DEFAULT } from '../../wire/fields.ts'
import { sessionOperations } from '../../wire/operations/identity/sessions.ts'

const PEPPER_BYTES = 32
/** Expiry of the session, the last second of the year 9999: it is valid while the process runs. */
const NEVER_MICROS = 253_402_300_799_000_000n

export interface LocalSessionsApp {
  readonly localSessions: LocalSessions
}

export class LocalSessions implements Sessions {
  /** The token of the author. */
  readonly accessToken: Secret
  readonly #system: System
  readonly #credentials: Credentials
  readonly #author: Actor
  /** The DERIVED_SESSIONS_MAX or fewer that have not ended, by the digest of their token. */
  readonly #derived = new Map<string, DerivedSession>()

  constructor(
    system: System,
    environment: { readonly projectId: ProjectId; readonly environmentId: EnvironmentId },
  ) {
    this.#system = system
    this.#credentials = new Credentials(system.randomBytes(PEPPER_BYTES), system)
    this.#author = authorOf(environment)
    this.accessToken = this.#credentials.issueAccessToken().secret
  }

  recognize(accessToken: string): string | null {
    return this.#credentials.recognizeAccessToken(accessToken)?.toString('hex') ?? null
  }

  async authenticate(accessToken: string): Promise<Actor> {
    if (this.#credentials.kindOf(accessToken) === 'access-token') return this.#author
    this.#removeEnded()
    const digest = this.recognize(accessToken)
    const session = digest === null ? undefined : this.#derived.get(digest)
    if (digest === null || session === undefined) throw rejection()
    const used = { ...session, lastUsedAtMicros: this.#system.nowMicros() }
    this.#derived.set(digest, used)
    return this.#actorOf(used)
  }

  async whileAuthorized<T>(actor: Actor, work: (current: Actor) => T): Promise<T> {
    if (actor.purpose === null) return work(this.#author)
    const [, session] = this.#find(actor.sessionId) ?? []
    if (session === undefined) throw rejection()
    return work(this.#actorOf(session))
  }

  /** Opens a derived session. Throws what `derivedSessionOf` does. */
  derive(actor: Actor, input: Omit<DerivationInput, 'requestId'>): Login {
    this.#removeEnded()
    const count = this.#derived.size
    const session = derivedSessionOf(this.#system, actor, { ...input, count })
    const { secret, digest } = this.#credentials.issueAccessToken('derived-token')
    this.#derived.set(digest.toString('hex'), session)
    const { operator, grants } = this.#actorOf(session)
    return { operator, session, grants, accessToken: secret, refreshToken: null }
  }

  /**
   * Ends a derived session. Throws PLATFORM_ACCESS_DENIED for the session of the author, which ends
   * with the process, and for a derived session that asks for any but itself, and
   * PLATFORM_NOT_FOUND.
   */
  revoke(actor: Actor, sessionId: SessionId): void {
    const isOther = actor.purpose !== null && sessionId !== actor.sessionId
    if (isOther || sessionId === this.#author.sessionId) {
      throw new Fault('PLATFORM_ACCESS_DENIED', {
        detail: 'only derived sessions are revoked, by themselves or by the author',
        violations: [{ path: 'session', rule: 'a derived session' }],
      })
    }
    const found = this.#find(sessionId)
    if (found === null) throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown session' })
    this.#derived.delete(found[0])
  }

  /** Returns a page of the sessions that can be used, newest first. */
  page({ after, limit }: SessionPageInput): SessionPage {
    this.#removeEnded()
    const all = [...this.#derived.values(), this.#author.session].sort((a, b) =>
      a.sessionId < b.sessionId ? 1 : -1,
    )
    const left = all.filter(({ sessionId }) => after === null || sessionId < after)
    const sessions = left.slice(0, limit)
    return { sessions, next: left.length > limit ? sessions.at(-1)!.sessionId : null }
  }

  #find(wanted: SessionId): readonly [string, DerivedSession] | null {
    this.#removeEnded()
    return [...this.#derived].find(([, { sessionId }]) => sessionId === wanted) ?? null
  }

  #removeEnded(): void {
    const now = this.#system.nowMicros()
    for (const [digest, { accessExpiresAtMicros }] of this.#derived) {
      if (accessExpiresAtMicros <= now) this.#derived.delete(digest)
    }
  }

  #actorOf(session: DerivedSession): Actor {
    const { operator, grants } = this.#author
    return toActor({ session, operator, grants })
  }
}

/** The routes of sessions, with the wire form of a server. */
export const localSessionRoutes: readonly Route<LocalSessionsApp>[] = bind(sessionOperations, {
  listSessions({ app, actor, query }) {
    const { after = null, limit = PAGE_DEFAULT } = query
    const page = app.localSessions.page({ after, limit })
    return { status: 200, body: sessionsBody(page, actor.sessionId) }
  },

  deriveSession({ app, actor, body }) {
    return { status: 201, body: loginBody(app.localSessions.derive(actor, body)) }
  },

  revokeSession({ app, actor, params }) {
    app.localSessions.revoke(actor, params.sessionId)
    return { status: 204 }
  },
})

function rejection(): Fault {
  return new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail: 'no session of this svc dev' })
}

function authorOf(environment: {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
}): Actor {
  const { operatorId, sessionId } = localAuthor(environment.environmentId)
  const scope = environmentScope(environment.projectId, environment.environmentId)
  const grant: Grant = { scope, capabilities: LOCAL_CAPABILITIES, source: 'bootstrap' }
  return toActor({
    operator: {
      operatorId,
      operatorName: 'svc dev',
      createdAtMicros: 0n,
      authorizationRevision: 1n,
    },
    session: {
      sessionId,
      operatorId,
      deviceName: null,
      createdAtMicros: 0n,
      lastUsedAtMicros: 0n,
      accessExpiresAtMicros: NEVER_MICROS,
      refreshExpiresAtMicros: NEVER_MICROS,
      derivation: null,
    },
    grants: [grant],
  })
}
