/** Pages of the security audit (wire decisions, section 5, Page). */
import { idField, Micros, PAGE_MAX, PageLimit } from './fields.ts'
import { message } from './schema.ts'

export const AuditQuery = message({
  'operator?': idField('opr'),
  'operation?': message(/^[a-z][a-z0-9_.-]{0,127}$/).describe('the name of an operation'),
  'from?': Micros,
  'to?': Micros,
  'after?': message(/^[A-Za-z0-9_-]{1,256}$/).describe('a cursor of this list'),
  'limit?': PageLimit,
})

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
  items: AuditRecord.array().atMostLength(PAGE_MAX),
  next: 'string <= 256 | null',
})
export type AuditPage = typeof AuditPage.infer
