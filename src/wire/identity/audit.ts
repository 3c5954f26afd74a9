/** Pages of the security audit (contract/wire.md, Pages). */
import {
  idField,
  listUpTo,
  Micros,
  Name,
  PAGE_MAX,
  PageLimit,
  PurposeField,
  text,
  textUpTo,
} from '../fields.ts'
import { type Infer, schema } from '../schema.ts'
import { Provenance } from '../workspace.ts'

/** 32 bytes that end with a checksum. */
const Cursor = text(/^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/, 'a cursor of this list')

export const AuditQuery = schema({
  'operator?': idField('opr'),
  'operation?': text(/^[a-z][a-z0-9_.-]{0,127}$/, 'the name of an operation'),
  'from?': Micros,
  'to?': Micros,
  'after?': Cursor,
  'limit?': PageLimit,
})

export const AuditRecord = schema({
  auditId: idField('aud'),
  operation: textUpTo(128),
  outcome: "'succeeded' | 'denied' | 'failed'",
  /** The acting operator; null for the server, development keys and unauthenticated callers. */
  actor: [idField('opr'), '|', 'null'],
  actorName: [Name, '|', 'null'],
  subject: [textUpTo(512), '|', 'null'],
  /** The operator that the subject is, or that the invitation or session belongs to. */
  subjectName: [Name, '|', 'null'],
  /** Declared origin of the Release that the subject names; null without `releases:read`. */
  provenance: [Provenance, '|', 'null'],
  atMicros: Micros,
  requestId: [idField('req'), '|', 'null'],
  sessionId: [idField('ops'), '|', 'null'],
  invitationId: [idField('opi'), '|', 'null'],
  operationId: [idField('opn'), '|', 'null'],
  /** The application credential whose development key made the change; null for any other. */
  credentialId: [idField('crd'), '|', 'null'],
  /** Purpose of the derived session that made the change, or was opened. */
  'purpose?': PurposeField,
})

export type AuditRecord = Infer<typeof AuditRecord>

export const AuditPage = schema({
  version: '1',
  items: listUpTo(AuditRecord, PAGE_MAX),
  /** `after` of the next page; null on the last page. */
  next: [Cursor, '|', 'null'],
})
export type AuditPage = Infer<typeof AuditPage>
