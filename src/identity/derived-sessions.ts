/**
 * Derived sessions: a part of an operator's rights for a time, for a console, an agent or a job.
 * Such a session has no refresh token and derives no other; it ends with the session that it was
 * derived from, and with it lose their effect the grants that its operator loses.
 */
import {
  countDerivedSessions,
  type Derivation,
  insertSession,
  lockSession,
  type Session,
} from '../database/identity/sessions.ts'
import { transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import type { System } from '../system/system.ts'
import type { Capability, SessionPurpose } from '../value/capabilities.ts'
import type { Scope } from '../value/scope.ts'
import { type Actor, grantsWithin, requireCapability } from './actor.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import { type Login, lockActor } from './sessions.ts'

/** @limit Identity and keys: derived sessions of one session that can be used at the same time */
export const DERIVED_SESSIONS_MAX = 32
const MICROS_PER_SECOND = 1_000_000n
/** Seconds after which a client that has too many derived sessions may try again. */
const RETRY_SECONDS = 60

export interface DerivationInput extends Origin {
  readonly capabilities: readonly Capability[]
  readonly scope: Scope
  /** 1 to DERIVED_SECONDS_MAX. */
  readonly lifetimeSeconds: number
  readonly purpose: SessionPurpose
}

/**
 * Opens a session that ends after its lifetime, or with the actor's session. Throws what
 * `derivedSessionOf` does, and PLATFORM_AUTHENTICATION_FAILED where the actor's session ended
 * meanwhile.
 */
export async function deriveSession(
  core: IdentityCore,
  actor: Actor,
  { requestId, ...input }: DerivationInput,
): Promise<Login> {
  const { system, credentials } = core
  requireUnderived(actor)
  return transaction(core.database, async (tx) => {
    await lockSession(tx, actor.sessionId)
    // The locks keep the session and its grants as they are until the commit.
    const parent = await lockActor(core, tx, actor.sessionId)
    const count = await countDerivedSessions(tx, parent.sessionId, system.nowMicros())
    const session = derivedSessionOf(system, parent, { ...input, count })
    const { secret, digest } = credentials.issueAccessToken('derived-token')
    await insertSession(tx, session, { access: digest, refresh: null })
    const { sessionId, createdAtMicros: atMicros } = session
    const facts = { actor: parent.operatorId, subject: sessionId, atMicros, requestId, sessionId }
    await recordAudit(tx, system, 'session.derive', { ...facts, purpose: input.purpose })
    const grants = grantsWithin(parent.grants, session.derivation)
    const { operator } = parent
    return { operator, session, grants, accessToken: secret, refreshToken: null }
  })
}

/** A session with the bounds of its derivation. */
export type DerivedSession = Session & { readonly derivation: Derivation }

/**
 * Returns the session that a derivation opens, where `count` others of the actor's session can be
 * used. Throws PLATFORM_ACCESS_DENIED for a capability that the actor does not hold at the scope,
 * and for an actor with a derived session, and PLATFORM_RATE_LIMITED beyond DERIVED_SESSIONS_MAX.
 */
export function derivedSessionOf(
  system: Pick<System, 'ids' | 'nowMicros'>,
  parent: Actor,
  input: Omit<DerivationInput, 'requestId'> & { readonly count: number },
): DerivedSession {
  requireUnderived(parent)
  const { scope, purpose, lifetimeSeconds, count } = input
  const capabilities = [...new Set(input.capabilities)].sort()
  for (const capability of capabilities) requireCapability(parent, capability, scope)
  const parentSessionId = parent.sessionId
  if (count >= DERIVED_SESSIONS_MAX) {
    const detail = `${count} derived sessions of ${parentSessionId}`
    throw new Fault('PLATFORM_RATE_LIMITED', { retryAfterSeconds: RETRY_SECONDS, detail })
  }
  const atMicros = system.nowMicros()
  const ends = atMicros + BigInt(lifetimeSeconds) * MICROS_PER_SECOND
  const latest = parent.session.refreshExpiresAtMicros
  const expiresAtMicros = ends < latest ? ends : latest
  return {
    sessionId: system.ids.make('ops'),
    operatorId: parent.operatorId,
    deviceName: parent.session.deviceName,
    createdAtMicros: atMicros,
    lastUsedAtMicros: atMicros,
    accessExpiresAtMicros: expiresAtMicros,
    refreshExpiresAtMicros: expiresAtMicros,
    derivation: { parentSessionId, purpose, capabilities, scope },
  }
}

/** Throws PLATFORM_ACCESS_DENIED for a derived session, whose rights would outlast it otherwise. */
function requireUnderived({ purpose }: Actor): void {
  if (purpose === null) return
  throw new Fault('PLATFORM_ACCESS_DENIED', {
    detail: `a derived session of the purpose ${purpose}`,
    violations: [{ path: 'session', rule: 'a session that is not derived from another one' }],
  })
}
