/** `svc audit`: reads one page of the security audit. */
import { isId } from '../../../value/ids.ts'
import { formatTimestamp, plainToValue } from '../../../value/plain.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { Timestamp } from '../../../value/values.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { AuditRecord } from '../../../wire/identity/audit.ts'
import { listAuditRecords } from '../../../wire/operations/identity/audit.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { sourceText } from '../../provenance/provenance.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { usage } from '../../usage.ts'

export const auditCommand: CommandSpec = command({
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
  async run(context, options) {
    const { operator, operation, after, limit } = options
    if (operator !== undefined && !isId('opr', operator)) {
      throw usage('--operator needs an opr_ identifier.', auditCommand)
    }
    if (limit !== undefined && !(/^[1-9][0-9]*$/.test(limit) && Number(limit) <= PAGE_MAX)) {
      throw usage(`--limit needs a number from 1 to ${PAGE_MAX}.`, auditCommand)
    }
    const [from, to] = [microsOf('--from', options.from), microsOf('--to', options.to)]
    const session = await OperatorSession.open(context)
    const request = session.call(listAuditRecords, {
      query: { operator, operation, from, to, limit, after },
      subjects: { scope: 'installation' },
    })
    const page = await context.output.progress('reading the audit', request)
    const rows = page.items.map((record) => [
      formatTimestamp(BigInt(record.atMicros)),
      record.operation,
      record.outcome,
      named(record.actor ?? record.credentialId, record.actorName),
      named(record.subject, record.subjectName ?? declaredText(record.provenance)),
      record.requestId ?? '-',
    ])
    const head = ['TIME', 'OPERATION', 'OUTCOME', 'ACTOR', 'SUBJECT', 'REQUEST']
    await context.output.result(page, context.output.table(head, rows))
    if (page.next !== null) await context.output.note(`More: --after ${page.next}`)
  },
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
