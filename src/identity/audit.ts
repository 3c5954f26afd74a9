/**
 * The security audit: one record for each change, in the transaction of the change. Changes of the
 * Product are in another store, so their records are delivered after the commit.
 */
import { type AuditRecord, insertAudit } from '../database/identity/audit.ts'
import type { Tx } from '../database/transaction.ts'
import { assert } from '../errors/assert.ts'
import type { System } from '../system/system.ts'
import type { IdentityCore } from './core.ts'

export type IdentityOperation =
  | 'bootstrap.create'
  | 'bootstrap.expire'
  | 'bootstrap.recover'
  | 'bootstrap.consume'
  | 'invitation.create'
  | 'invitation.consume'
  | 'invitation.revoke'
  | 'identity.link'
  | 'identity.login'
  | 'grants.reconcile'
  | 'grants.adopt_legacy'
  | 'grants.change'
  | 'grants.revoke'
  | 'session.create'
  | 'session.derive'
  | 'session.refresh'
  | 'session.revoke'
  | 'session.reuse_detected'
  | 'operator.disable'
  | 'operator.enable'
  | 'owner.recover'
  | 'pepper.change'
  | 'installation.restore'

type Correlated = Pick<AuditRecord, 'actor' | 'subject' | 'atMicros' | 'requestId'> &
  Partial<Pick<AuditRecord, 'sessionId' | 'invitationId' | 'operationId' | 'purpose'>>

/** Records a change that `tx` makes, or what it denied. */
export async function recordAudit(
  tx: Tx,
  { ids }: Pick<System, 'ids'>,
  operation: IdentityOperation,
  facts: Correlated,
  outcome: AuditRecord['outcome'] = 'succeeded',
): Promise<void> {
  await insertAudit(tx, {
    auditId: ids.make('aud'),
    operation,
    outcome,
    sessionId: null,
    invitationId: null,
    operationId: null,
    credentialId: null,
    purpose: null,
    ...facts,
  })
}

/** Audit record that the outbox of the Product delivers, with the ID that it has there. */
export type ProductAuditRecord = Omit<AuditRecord, 'invitationId'>

const PRODUCT_OPERATION = /^product(?:\.[a-z][a-z0-9_-]{0,63}){2}$/

/** Stores a record, at most once. Throws PLATFORM_UNAVAILABLE where it may not be stored. */
export async function deliverProductAudit(
  { database }: Pick<IdentityCore, 'database'>,
  record: ProductAuditRecord,
): Promise<void> {
  assert(PRODUCT_OPERATION.test(record.operation), 'product.<resource>.<verb>')
  await insertAudit(database, { ...record, invitationId: null }, 'deliver')
}
