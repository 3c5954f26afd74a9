/** Pages of the security audit (wire decisions, section 5, Page). */
import { idField, listUpTo, Micros, PAGE_MAX, PageLimit, text, textUpTo } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const AuditQuery = schema({
  'operator?': idField('opr'),
  'operation?': text(/^[a-z][a-z0-9_.-]{0,127}$/, 'the name of an operation'),
  'from?': Micros,
  'to?': Micros,
  'after?': text(/^[A-Za-z0-9_-]{1,256}$/, 'a cursor of this list'),
  'limit?': PageLimit,
})

export const AuditRecord = schema({
  auditId: idField('aud'),
  operation: textUpTo(128),
  outcome: "'succeeded' | 'denied' | 'failed'",
  /** Who did it; null where the server itself or a stranger acted. */
  actor: [idField('opr'), '|', 'null'],
  subject: [textUpTo(512), '|', 'null'],
  atMicros: Micros,
  requestId: [idField('req'), '|', 'null'],
  sessionId: [idField('ops'), '|', 'null'],
  invitationId: [idField('opi'), '|', 'null'],
  operationId: [idField('opn'), '|', 'null'],
})

export const AuditPage = schema({
  version: '1',
  items: listUpTo(AuditRecord, PAGE_MAX),
  next: [textUpTo(256), '|', 'null'],
})
export type AuditPage = Infer<typeof AuditPage>
