/**
 * A sequential model of identity: invitations by Operation ID, sessions by generation, subjects of
 * the provider by the revision of the managed source. A concurrent batch is correct if some order
 * of its operations gives the same results and the same final state (linearizability).
 */

import { expectedGrantsText } from './statements.ts'

export interface InvitationModel {
  readonly kind: 'invitation'
  readonly state: 'absent' | 'pending' | 'consumed' | 'revoked'
  /** Index of the request that created it. */
  readonly variant: number
  readonly expiresAtMicros: bigint
}

export interface SessionModel {
  readonly kind: 'session'
  readonly state: 'live' | 'revoked' | 'reuse'
  readonly generation: number
  /** Expiry of the access token of this generation. */
  readonly accessExpiresAtMicros: bigint
}

/** A statement of the managed source: indexes into the lists of statements.ts. */
export interface Statement {
  readonly revision: number
  readonly content: number
}

export interface SubjectModel {
  readonly kind: 'subject'
  /** A local operator has no subject. */
  readonly operator: 'none' | 'linked' | 'local'
  /** True if the operator has a grant from before managed sources existed. */
  readonly legacy: boolean
  /** -1 before the first statement. */
  readonly revision: number
  readonly content: number | null
  readonly authorization: number
  /** Audit operations, except those of sessions. */
  readonly records: readonly string[]
}

export type Model = InvitationModel | SessionModel | SubjectModel

export type Operation =
  | { readonly kind: 'issue'; readonly variant: number }
  | { readonly kind: 'look' | 'exchange' | 'revoke' }
  | { readonly kind: 'refresh' | 'authenticate'; readonly generation: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'log-in'; readonly statement: null }
  | { readonly kind: 'enroll' | 'reconcile'; readonly statement: Statement }

/** `ok`, the state that a look-up returns, or the code of a Fault. */
export type Result = string

const FAILED = 'PLATFORM_AUTHENTICATION_FAILED'
const INVITATION_MICROS = 1_800_000_000n
const ACCESS_MICROS = 600_000_000n

export const ABSENT: InvitationModel = {
  kind: 'invitation',
  state: 'absent',
  variant: -1,
  expiresAtMicros: 0n,
}

export const UNKNOWN_SUBJECT: SubjectModel = {
  kind: 'subject',
  operator: 'none',
  legacy: false,
  revision: -1,
  content: null,
  authorization: 1,
  records: [],
}

export function opened(atMicros: bigint): SessionModel {
  const accessExpiresAtMicros = atMicros + ACCESS_MICROS
  return { kind: 'session', state: 'live', generation: 1, accessExpiresAtMicros }
}

/** Applies one operation at a given time. */
export function step(model: Model, operation: Operation, atMicros: bigint): [Model, Result] {
  switch (model.kind) {
    case 'invitation':
      return stepInvitation(model, operation, atMicros)
    case 'session':
      return stepSession(model, operation, atMicros)
    case 'subject':
      return stepSubject(model, operation)
  }
}

function stepInvitation(
  model: InvitationModel,
  operation: Operation,
  atMicros: bigint,
): [Model, Result] {
  const expired = model.state === 'pending' && model.expiresAtMicros <= atMicros
  switch (operation.kind) {
    case 'issue': {
      const { variant } = operation
      const expiresAtMicros = atMicros + INVITATION_MICROS
      if (model.state === 'absent') {
        return [{ kind: 'invitation', state: 'pending', variant, expiresAtMicros }, 'issued']
      }
      const same = variant === model.variant
      return [model, same ? 'replayed' : 'PLATFORM_INVITATION_OPERATION_REUSED']
    }
    case 'look':
      if (model.state === 'absent') return [model, 'PLATFORM_NOT_FOUND']
      return [model, expired ? 'expired' : model.state]
    case 'exchange':
      if (model.state !== 'pending' || expired) return [model, FAILED]
      return [{ ...model, state: 'consumed' }, 'ok']
    case 'revoke':
      if (model.state === 'consumed') return [model, 'PLATFORM_CONFLICT']
      return [{ ...model, state: 'revoked' }, 'ok']
    default:
      throw new Error(`${operation.kind} is not for an invitation`)
  }
}

function stepSession(model: SessionModel, operation: Operation, atMicros: bigint): [Model, Result] {
  const { state, generation } = model
  switch (operation.kind) {
    case 'refresh': {
      if (state !== 'live') return [model, FAILED]
      if (operation.generation < generation) return [{ ...model, state: 'reuse' }, FAILED]
      const accessExpiresAtMicros = atMicros + ACCESS_MICROS
      return [{ ...model, generation: generation + 1, accessExpiresAtMicros }, 'ok']
    }
    case 'authenticate': {
      const current = state === 'live' && operation.generation === generation
      return [model, current && model.accessExpiresAtMicros > atMicros ? 'ok' : FAILED]
    }
    case 'end':
      return [state === 'live' ? { ...model, state: 'revoked' } : model, 'ok']
    default:
      throw new Error(`${operation.kind} is not for a session`)
  }
}

function stepSubject(model: SubjectModel, operation: Operation): [Model, Result] {
  switch (operation.kind) {
    case 'log-in':
    case 'enroll': {
      const { statement } = operation
      const first = model.operator === 'none'
      if (first && statement === null) return [model, FAILED]
      const record = first ? 'identity.link' : 'identity.login'
      const known = recorded({ ...model, operator: 'linked' }, record)
      const [next, outcome] = statement === null ? [known, ''] : stateGrants(known, statement)
      // One transaction: a rejected statement rejects the login too.
      if (next === null) return [model, outcome]
      return [
        next,
        `${first ? 'linked' : 'recognised'} ${expectedGrantsText(next.content, next.legacy)}`,
      ]
    }
    case 'reconcile': {
      const [next, outcome] = stateGrants(model, operation.statement)
      return next === null ? [model, outcome] : [next, `${outcome} ${next.authorization}`]
    }
    default:
      throw new Error(`${operation.kind} is not for a subject`)
  }
}

/** Applies a statement. Returns null and the code of the Fault if it is rejected. */
function stateGrants(
  model: SubjectModel,
  { revision, content }: Statement,
): [SubjectModel, 'applied' | 'replayed'] | [null, Result] {
  if (revision < model.revision) return [null, 'PLATFORM_MANAGED_SOURCE_STALE']
  if (revision === model.revision) {
    const same = content === model.content
    return same ? [model, 'replayed'] : [null, 'PLATFORM_MANAGED_SOURCE_CONFLICT']
  }
  const adopts = model.legacy && model.operator === 'linked'
  const { legacy, authorization } = model
  const next = { ...model, revision, content, authorization: authorization + 1 }
  const adopted = adopts ? recorded(next, 'grants.adopt_legacy') : next
  return [recorded({ ...adopted, legacy: legacy && !adopts }, 'grants.reconcile'), 'applied']
}

function recorded(model: SubjectModel, record: string): SubjectModel {
  return { ...model, records: [...model.records, record] }
}

export interface Observed {
  readonly operation: Operation
  readonly result: Result
}

/** Returns the final state of an order that explains all results and `isEnd` accepts, or null. */
export function explain(
  model: Model,
  observed: readonly Observed[],
  atMicros: bigint,
  isEnd: (model: Model) => boolean,
): Model | null {
  if (observed.length === 0) return isEnd(model) ? model : null
  const tried = new Set<string>()
  for (const [i, { operation, result }] of observed.entries()) {
    // Equal operations with equal results are interchangeable.
    const name = `${JSON.stringify(operation)} ${result}`
    if (tried.has(name)) continue
    tried.add(name)
    const [next, expected] = step(model, operation, atMicros)
    if (expected !== result) continue
    const end = explain(next, observed.toSpliced(i, 1), atMicros, isEnd)
    if (end !== null) return end
  }
  return null
}
