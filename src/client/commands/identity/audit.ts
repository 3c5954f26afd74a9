/** `svc audit`: reads one page of the security audit. */
import { plainToValue } from '../../../value/plain.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { AuditRecord } from '../../../wire/identity/audit.ts'
import { listAuditRecords } from '../../../wire/operations/identity/audit.ts'
import { type CommandSpec, option } from '../../contexts.ts'
import { sourceText } from '../../provenance/provenance.ts'
import { isPageLimit, nextPage, requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { requireId, usage } from '../../usage.ts'

export const auditCommand: CommandSpec = requestCommand({
  name: 'audit',
  summary: 'Read the security audit, newest records first',
  details: [
    'Needs operators:manage at the installation. TIME is ISO 8601, such as 2026-01-31T08:00:00Z,',
    'or microseconds since 1970.',
  ],
  options: {
    operator: option('opr_ID', 'Only records of this operator'),
    operation: option('NAME', 'Only this operation, such as session.create'),
    from: option('TIME', 'Only records at this time or later'),
    to: option('TIME', 'Only records before this time'),
    limit: option('COUNT', `Number of records, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('CURSOR', 'The `next` value of the previous page'),
  },
  examples: ['svc audit --operation session.reuse_detected --from 2026-01-31T00:00:00Z'],
  input({ operator, operation, after, limit, ...times }) {
    if (operator !== undefined) requireId('opr', operator, '--operator', auditCommand)
    if (limit !== undefined && !isPageLimit(limit)) {
      throw usage(`--limit needs a number from 1 to ${PAGE_MAX}.`, auditCommand)
    }
    const [from, to] = [microsOf('--from', times.from), microsOf('--to', times.to)]
    return { operator, operation, from, to, limit, after }
  },
  open: OperatorSession.open,
  progress: 'reading the audit',
  request: (session, query) =>
    session.call(listAuditRecords, { query, subjects: { scope: 'installation' } }),
  rows: ({ items }) => items,
  columns: {
    TIME: 'atMicros',
    OPERATION: 'operation',
    OUTCOME: 'outcome',
    ACTOR: ({ actor, credentialId, actorName }) => named(actor ?? credentialId, actorName),
    SUBJECT: ({ subject, subjectName, provenance }) =>
      named(subject, subjectName ?? declaredText(provenance)),
    REQUEST: 'requestId',
    PURPOSE: 'purpose',
  },
  note: nextPage,
})

function named(id: string | null, name: string | null): string {
  if (id === null) return '-'
  return name === null ? id : `${id} ${name}`
}

/** Message and source of the Release that a subject names; null if nothing was declared. */
function declaredText(provenance: AuditRecord['provenance']): string | null {
  if (provenance === null) return null
  const source = sourceText(provenance)
  return [provenance.message, source === '-' ? null : `(${source})`].filter(Boolean).join(' ')
}

function microsOf(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  try {
    const value = plainToValue(text, { type: 'timestamp' })
    if (value instanceof Timestamp && value.micros >= 0n) return String(value.micros)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
  throw usage(`${name} needs a time such as 2026-01-31T08:00:00Z.`, auditCommand)
}
