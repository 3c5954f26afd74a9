/** Device sessions: authentication, token rotation, reuse detection, revocation. */
import { type Grant, listGrants } from '../database/identity/grants.ts'
import { getOperator, type Operator } from '../database/identity/operators.ts'
import {
  type AuthenticatedSession,
  findSession,
  findSessionByAccess,
  insertSession,
  listActiveSessions,
  lockActiveSession,
  markDerivedSessionsRevoked,
  markSessionRevoked,
  markSessionUsed,
  revokeReusedSession,
  rotateSession,
  type Session,
} from '../database/identity/sessions.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import type { SessionId } from '../value/ids.ts'
import { INSTALLATION } from '../value/scope.ts'
import type { Secret } from '../value/secret.ts'
import { type Actor, grantsWithin, requireCapability } from './actor.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import type { RefreshToken } from './credentials.ts'

export type { Session } from '../database/identity/sessions.ts'

/** Result of a login, the only one with tokens. */
export interface Login {
  readonly operator: Operator
  readonly session: Session
  readonly grants: readonly Grant[]
  readonly accessToken: Secret
  /** Null if the session ends with its access token. */
  readonly refreshToken: Secret | null
}

/**
 * Lifetimes (contract/management.md, Limits), in microseconds.
 * @limit Identity and keys: lifetime of an access token of an operator
 */
export const ACCESS_LIFETIME_MICROS = 600_000_000n
/** @limit Identity and keys: lifetime of a refresh token of an operator */
export const REFRESH_LIFETIME_MICROS = 30n * 86_400_000_000n
/** Lag allowed for `lastUsedAtMicros`, so that most requests write nothing. */
const LAST_USED_STEP_MICROS = 60_000_000n

/** Creates a session with its first tokens, in the given transaction. */
export async function openSession(
  { system, credentials }: IdentityCore,
  tx: Tx,
  input: {
    readonly operator: Operator
    readonly grants: readonly Grant[]
    readonly deviceName: string | null
    readonly atMicros: bigint
    /** False if the session has no refresh token. Defaults to true. */
    readonly isRenewable?: boolean
  },
): Promise<Login> {
  const { operator, grants, deviceName, atMicros, isRenewable = true } = input
  const accessExpiresAtMicros = atMicros + ACCESS_LIFETIME_MICROS
  const session: Session = {
    sessionId: system.ids.make('ops'),
    operatorId: operator.operatorId,
    deviceName,
    createdAtMicros: atMicros,
    lastUsedAtMicros: atMicros,
    accessExpiresAtMicros,
    refreshExpiresAtMicros: isRenewable
      ? atMicros + REFRESH_LIFETIME_MICROS
      : accessExpiresAtMicros,
    derivation: null,
  }
  const access = credentials.issueAccessToken()
  const refresh = isRenewable ? credentials.issueRefreshToken(session.sessionId, 1n) : null
  const digests = { access: access.digest, refresh: refresh?.digest ?? null }
  await insertSession(tx, session, digests)
  const tokens = { accessToken: access.secret, refreshToken: refresh?.secret ?? null }
  return { operator, session, grants, ...tokens }
}

/**
 * Returns the actor of a request with its current grants, by one statement. Throws
 * PLATFORM_AUTHENTICATION_FAILED for a malformed, unknown, expired or revoked token and for a
 * disabled operator.
 */
export async function authenticate(core: IdentityCore, accessToken: string): Promise<Actor> {
  const digest = core.credentials.recognizeAccessToken(accessToken)
  if (digest === null) throw rejection('not an access token of this server')
  const atMicros = core.system.nowMicros()
  const found = await findSessionByAccess(core.database, digest, atMicros)
  if (found === null) throw rejection('no live session of an enabled operator')
  return toActor({ ...found, session: await useSession(core, found.session, atMicros) })
}

/**
 * Runs `work` once, under locks on the session and its operator. A revocation, a disabled operator
 * or a change of grants was committed before, or waits until `work` returns. `work` receives the
 * actor with its current grants. Only the session must be active, since an access token may expire
 * during a long request. Throws PLATFORM_AUTHENTICATION_FAILED, PLATFORM_UNAVAILABLE before `work`,
 * and the errors of `work`.
 */
export async function whileAuthorized<T>(
  core: Pick<IdentityCore, 'database' | 'system'>,
  { sessionId }: Actor,
  work: (current: Actor) => T,
): Promise<T> {
  let done: { readonly result: T } | null = null
  try {
    return await transaction(core.database, async (tx) => {
      const current = await lockActor(core, tx, sessionId)
      done ??= { result: work(current) }
      return done.result
    })
  } catch (error) {
    // The transaction stores nothing, so its failure after `work` does not matter.
    const finished = done as { readonly result: T } | null
    if (finished === null) throw error
    return finished.result
  }
}

/**
 * Locks the session and its operator until the transaction ends. Returns the actor with its grants
 * of now. Throws PLATFORM_AUTHENTICATION_FAILED where the session has ended.
 */
export async function lockActor(
  { system }: Pick<IdentityCore, 'system'>,
  tx: Tx,
  sessionId: SessionId,
): Promise<Actor> {
  const locked = await lockActiveSession(tx, sessionId, system.nowMicros())
  if (locked === null) throw rejection('the session ended during the request')
  // A second statement: the first one may have waited for a lock, and sees the grants of its start.
  const grants = await listGrants(tx, locked.operator.operatorId)
  return toActor({ ...locked, grants })
}

/** Returns the actor of a session, with those of the operator's grants that it has. */
export function toActor({ session, operator, grants }: AuthenticatedSession): Actor {
  const { operatorId, operatorName } = operator
  const { sessionId, derivation } = session
  const ofOperator = { operatorId, operatorName, sessionId, operator, session }
  if (derivation === null) return { ...ofOperator, purpose: null, grants }
  const { purpose } = derivation
  return { ...ofOperator, purpose, grants: grantsWithin(grants, derivation) }
}

/** Records the use of a session, and returns the session after it. */
async function useSession(
  { database }: IdentityCore,
  session: Session,
  atMicros: bigint,
): Promise<Session> {
  if (session.lastUsedAtMicros + LAST_USED_STEP_MICROS > atMicros) return session
  await markSessionUsed(database, session.sessionId, atMicros)
  return { ...session, lastUsedAtMicros: atMicros }
}

export interface RefreshInput extends Origin {
  readonly refreshToken: string
}

/**
 * Exchanges a refresh token for two new tokens. Throws PLATFORM_AUTHENTICATION_FAILED. An authentic
 * token of an older generation means that another party holds a copy, so it also revokes the
 * session (RFC 9700, 4.14.2).
 */
export async function refresh(core: IdentityCore, input: RefreshInput): Promise<Login> {
  const token = core.credentials.recognizeRefreshToken(input.refreshToken)
  if (token === null) throw rejection('not a refresh token of this server')
  const login = await transaction(core.database, async (tx) => {
    const atMicros = core.system.nowMicros()
    const rotated = await rotate(core, tx, token, input, atMicros)
    if (rotated === null) await detectReuse(core, tx, token, input, atMicros)
    return rotated
  })
  // Thrown after the commit, which keeps the revocation.
  if (login === null) throw rejection('not the current token of a live session')
  return login
}

async function rotate(
  { system, credentials }: IdentityCore,
  tx: Tx,
  token: RefreshToken,
  { requestId }: Origin,
  atMicros: bigint,
): Promise<Login | null> {
  const access = credentials.issueAccessToken()
  const refresh = credentials.issueRefreshToken(token.sessionId, token.generation + 1n)
  const session = await rotateSession(tx, {
    sessionId: token.sessionId,
    generation: token.generation,
    presentedRefreshDigest: token.digest,
    next: { access: access.digest, refresh: refresh.digest },
    accessExpiresAtMicros: atMicros + ACCESS_LIFETIME_MICROS,
    atMicros,
  })
  if (session === null) return null
  const { operatorId, sessionId } = session
  const operator = await getOperator(tx, operatorId)
  const grants = await listGrants(tx, operatorId)
  const facts = { actor: operatorId, subject: sessionId, atMicros, requestId, sessionId }
  await recordAudit(tx, system, 'session.refresh', facts)
  return { operator, session, grants, accessToken: access.secret, refreshToken: refresh.secret }
}

async function detectReuse(
  { system }: IdentityCore,
  tx: Tx,
  { sessionId, generation }: RefreshToken,
  { requestId }: Origin,
  atMicros: bigint,
): Promise<void> {
  const owner = await revokeReusedSession(tx, sessionId, generation, atMicros)
  if (owner === null) return
  await markDerivedSessionsRevoked(tx, sessionId, atMicros)
  // The caller that presented the token is not known to be the operator.
  const facts = { actor: null, subject: sessionId, atMicros, requestId, sessionId }
  await recordAudit(tx, system, 'session.reuse_detected', facts)
}

export interface SessionPageInput {
  /** The `next` of the previous page; null for the first page. */
  readonly after: SessionId | null
  /** 1 to 1,000. */
  readonly limit: number
}

export interface SessionPage {
  readonly sessions: readonly Session[]
  /** Null on the last page. */
  readonly next: SessionId | null
}

/** Returns a page of the operator's sessions that can still be used, newest first. */
export async function listSessions(
  { database, system }: Pick<IdentityCore, 'database' | 'system'>,
  { operatorId }: Pick<Actor, 'operatorId'>,
  { after, limit }: SessionPageInput,
): Promise<SessionPage> {
  const atMicros = system.nowMicros()
  // One session more than the limit shows whether a next page exists.
  const found = await listActiveSessions(database, operatorId, atMicros, after, limit + 1)
  const sessions = found.slice(0, limit)
  return { sessions, next: found.length > limit ? sessions.at(-1)!.sessionId : null }
}

export interface RevocationInput extends Origin {
  readonly sessionId: SessionId
}

/**
 * Revokes a session and those derived from it. Idempotent. The session of another operator, and for
 * a derived session any but itself, requires `operators:manage` at the installation, which is
 * checked before the response reveals whether the session exists. Throws PLATFORM_ACCESS_DENIED and
 * PLATFORM_NOT_FOUND.
 */
export async function revokeSession(
  { database, system }: IdentityCore,
  actor: Actor,
  { sessionId, requestId }: RevocationInput,
): Promise<void> {
  await transaction(database, async (tx) => {
    const session = await findSession(tx, sessionId)
    const isOwn =
      actor.purpose === null
        ? session?.operatorId === actor.operatorId
        : session?.sessionId === actor.sessionId
    if (!isOwn) {
      requireCapability(actor, 'operators:manage', INSTALLATION)
    }
    if (session === null) throw new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown session' })
    const atMicros = system.nowMicros()
    if (!(await markSessionRevoked(tx, sessionId, atMicros))) return
    // A second statement: the first one may have waited for a derivation, and does not see it.
    await markDerivedSessionsRevoked(tx, sessionId, atMicros)
    const { operatorId, purpose } = actor
    const facts = { actor: operatorId, subject: sessionId, atMicros, requestId, sessionId, purpose }
    await recordAudit(tx, system, 'session.revoke', facts)
  })
}

function rejection(detail: string): Fault {
  return new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail })
}
