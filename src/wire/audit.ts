/** Pages of the security audit (wire decisions, section 5, Page). */
import * as z from 'zod'
import { idField, Micros, PAGE_MAX, PageLimit, text } from './fields.ts'

/** 32 bytes, the last of which are a checksum. */
const Cursor = text(/^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/, 'a cursor of this list')

export const AuditQuery = z.strictObject({
  operator: idField('opr').exactOptional(),
  operation: text(/^[a-z][a-z0-9_.-]{0,127}$/, 'the name of an operation').exactOptional(),
  from: Micros.exactOptional(),
  to: Micros.exactOptional(),
  after: Cursor.exactOptional(),
  limit: PageLimit.exactOptional(),
})

export const AuditRecord = z.strictObject({
  auditId: idField('aud'),
  operation: z.string().max(128),
  outcome: z.enum(['succeeded', 'denied', 'failed']),
  /** Who did it; null where the server itself or a stranger acted. */
  actor: idField('opr').nullable(),
  subject: z.string().max(512).nullable(),
  atMicros: Micros,
  requestId: idField('req').nullable(),
  sessionId: idField('ops').nullable(),
  invitationId: idField('opi').nullable(),
  operationId: idField('opn').nullable(),
})

export const AuditPage = z.strictObject({
  version: z.literal(1),
  items: AuditRecord.array().max(PAGE_MAX),
  /** `after` of the next page; null at the end. */
  next: Cursor.nullable(),
})
export type AuditPage = z.infer<typeof AuditPage>
