/** Pages of the security audit (wire decisions, section 5, Page). */
import { idField, Micros } from './fields.ts'
import { message } from './schema.ts'

export const AUDIT_PAGE_MAX = 1_000
export const AUDIT_PAGE_DEFAULT = 100

export const AuditRecord = message({
  auditId: idField('aud'),
  operation: 'string <= 128',
  outcome: "'succeeded' | 'denied' | 'failed'",
  /** Who did it; null where the server itself or a stranger acted. */
  actor: idField('opr').or('null'),
  subject: 'string <= 512 | null',
  atMicros: Micros,
  requestId: idField('req').or('null'),
  sessionId: idField('ops').or('null'),
  invitationId: idField('opi').or('null'),
  operationId: idField('opn').or('null'),
})

export const AuditPage = message({
  version: '1',
  items: AuditRecord.array().atMostLength(AUDIT_PAGE_MAX),
  next: 'string <= 256 | null',
})
export type AuditPage = typeof AuditPage.infer
