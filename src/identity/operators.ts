/**
 * Administration of operators: listing, disabling and enabling them. Every rule here requires
 * `operators:manage` at the installation. An owner is an enabled operator that holds it.
 */
import { lockOperation, lockOwners } from '../database/advisory-locks.ts'
import {
  findOperatorOperation,
  insertOperatorOperation,
  type OperatorOperation,
} from '../database/identity/operator-operations.ts'
import {
  hasOtherOwner,
  listOperatorRecords,
  lockOperatorState,
  markOperatorDisabled,
  type OperatorRecord,
  operatorExists,
} from '../database/identity/operator-records.ts'
import { markOperatorSessionsRevoked } from '../database/identity/sessions.ts'
import { type Tx, transaction } from '../database/transaction.ts'
import { Fault } from '../errors/fault.ts'
import { requireRecent } from '../system/client-clock.ts'
import { digestEquals, sha256 } from '../system/digests.ts'
import { canonicalJson } from '../value/canonical-json.ts'
import type { OperationId, OperatorId } from '../value/ids.ts'
import { INSTALLATION } from '../value/scope.ts'
import { type Actor, requireCapability } from './actor.ts'
import { recordAudit } from './audit.ts'
import type { IdentityCore, Origin } from './core.ts'
import { listSessions, lockActor, type SessionPage, type SessionPageInput } from './sessions.ts'

export type { OperatorRecord }

type Reading = Pick<IdentityCore, 'database' | 'system'>

export interface OperatorPageInput {
  /** The `next` of the page before; null begins with the newest operator. */
  readonly after: OperatorId | null
  /** 1 to 1,000. */
  readonly limit: number
}

export interface OperatorPage {
  readonly items: readonly OperatorRecord[]
  /** null at the end. */
  readonly next: OperatorId | null
}

/** Returns a page of all operators, disabled ones too, newest first. */
export async function listOperators(
  { database }: Reading,
  actor: Actor,
  { after, limit }: OperatorPageInput,
): Promise<OperatorPage> {
  requireCapability(actor, 'operators:manage', INSTALLATION)
  // One operator more than the limit shows whether a next page exists.
  const found = await listOperatorRecords(database, after, limit + 1)
  const items = found.slice(0, limit)
  return { items, next: found.length > limit ? items.at(-1)!.operatorId : null }
}

/** Returns a page of the operator's sessions that can still be used. Throws PLATFORM_NOT_FOUND. */
export async function listOperatorSessions(
  core: Reading,
  actor: Actor,
  { operatorId, ...page }: SessionPageInput & { readonly operatorId: OperatorId },
): Promise<SessionPage> {
  requireCapability(actor, 'operators:manage', INSTALLATION)
  if (!(await operatorExists(core.database, operatorId))) throw unknownOperator()
  return listSessions(core, { operatorId }, page)
}

export interface OperatorChange extends Origin {
  readonly verb: 'disable' | 'enable'
  readonly operatorId: OperatorId
  readonly operationId: OperationId
  /** The client's clock. */
  readonly changedAtMicros: bigint
}

export interface OperatorChanged extends Omit<OperatorOperation, 'requestFingerprint'> {
  readonly replayed: boolean
}

/**
 * Disables an operator and revokes its sessions, or enables it; the grants stay. An operator that
 * is in the state already stays as it is. Throws PLATFORM_ACCESS_DENIED, PLATFORM_NOT_FOUND,
 * PLATFORM_REQUEST_INVALID where the client's clock is off by a day, PLATFORM_CONFLICT for the last
 * owner and for an Operation ID of another request, and PLATFORM_AUTHENTICATION_FAILED where the
 * actor's session ended meanwhile.
 */
export async function changeOperator(
  core: IdentityCore,
  actor: Actor,
  change: OperatorChange,
): Promise<OperatorChanged> {
  requireCapability(actor, 'operators:manage', INSTALLATION)
  return transaction(core.database, async (tx) => {
    await lockOperation(tx, change.operationId)
    await lockOwners(tx)
    // The change that this one waited for may have taken the actor's authority away.
    const current = await lockActor(core, tx, actor.sessionId)
    requireCapability(current, 'operators:manage', INSTALLATION)
    const earlier = await findOperatorOperation(tx, change.operationId)
    return earlier === null
      ? apply(core, tx, current, change)
      : replay(earlier, fingerprint(current, change))
  })
}

async function apply(
  { system }: IdentityCore,
  tx: Tx,
  actor: Actor,
  change: OperatorChange,
): Promise<OperatorChanged> {
  const { verb, operatorId, operationId, requestId } = change
  requireRecent(system, change.changedAtMicros, 'changedAtMicros', 'PLATFORM_REQUEST_INVALID')
  const before = await lockOperatorState(tx, operatorId)
  if (before === null) throw unknownOperator()
  const atMicros = system.nowMicros()
  const kind = `operator.${verb}` as const
  const isChange = (verb === 'disable') === (before.disabledAtMicros === null)
  const after = isChange ? await move(tx, operatorId, verb, atMicros) : before
  if (isChange) {
    await recordAudit(tx, system, kind, {
      actor: actor.operatorId,
      subject: operatorId,
      atMicros,
      requestId,
      sessionId: actor.sessionId,
      purpose: actor.purpose,
      operationId,
    })
  }
  const operation = { operationId, kind, operatorId, ...after, createdAtMicros: atMicros }
  const requestFingerprint = fingerprint(actor, change)
  await insertOperatorOperation(tx, { ...operation, requestFingerprint })
  return { ...operation, replayed: false }
}

async function move(
  tx: Tx,
  operatorId: OperatorId,
  verb: OperatorChange['verb'],
  atMicros: bigint,
): Promise<Pick<OperatorOperation, 'disabledAtMicros' | 'authorizationRevision'>> {
  const disabledAtMicros = verb === 'disable' ? atMicros : null
  if (verb === 'disable') {
    if (!(await hasOtherOwner(tx, operatorId))) {
      throw new Fault('PLATFORM_CONFLICT', { detail: 'the last owner' })
    }
    await markOperatorSessionsRevoked(tx, operatorId, atMicros)
  }
  const authorizationRevision = await markOperatorDisabled(tx, operatorId, disabledAtMicros)
  return { disabledAtMicros, authorizationRevision }
}

function replay(
  { requestFingerprint, ...operation }: OperatorOperation,
  expected: Uint8Array,
): OperatorChanged {
  if (digestEquals(requestFingerprint, expected)) return { ...operation, replayed: true }
  throw new Fault('PLATFORM_CONFLICT', { detail: 'the Operation ID belongs to another change' })
}

/** Returns the digest of everything that is equal in an exact repeat, the operator included. */
function fingerprint(actor: Actor, { verb, operatorId, changedAtMicros }: OperatorChange) {
  return sha256(
    canonicalJson({
      version: 1,
      changedBy: actor.operatorId,
      verb,
      operatorId,
      changedAtMicros: String(changedAtMicros),
    }),
  )
}

function unknownOperator(): Fault {
  return new Fault('PLATFORM_NOT_FOUND', { detail: 'unknown operator' })
}
