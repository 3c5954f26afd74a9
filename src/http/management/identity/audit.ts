/** Pages of the security audit. */
import type { Actor } from '../../../identity/actor.ts'
import { readAuditPage } from '../../../identity/audit-pages.ts'
import type { Identity } from '../../../identity/identity.ts'
import type { Provenance } from '../../../value/packages/provenance.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import type { AuditPage } from '../../../wire/identity/audit.ts'
import { auditOperations } from '../../../wire/operations/identity/audit.ts'
import { bind, type Route } from '../route.ts'

export interface AuditApp {
  readonly identity: Identity
  /** Null for a subject that names no Release. Finds nothing unless it is given. */
  readonly findProvenance?: (actor: Actor, subject: string) => Provenance | null
}

/** The maximum of the type bigint of PostgreSQL. */
const MICROS_MAX = 2n ** 63n - 1n

export const auditRoutes: readonly Route<AuditApp>[] = bind(auditOperations, {
  async listAuditRecords({ app, actor, query }) {
    const { operator = null, operation = null, from, to, after = null, limit } = query
    const { items, next } = await readAuditPage(app.identity, actor, {
      actor: operator,
      operation,
      fromMicros: from === undefined ? 0n : BigInt(from),
      toMicros: to === undefined ? MICROS_MAX : BigInt(to),
      after,
      limit: limit ?? PAGE_DEFAULT,
    })
    const body: AuditPage = {
      version: 1,
      items: items.map(({ purpose, ...record }) => ({
        ...record,
        ...(purpose !== null && { purpose }),
        atMicros: String(record.atMicros),
        provenance: app.findProvenance?.(actor, record.subject ?? '') ?? null,
      })),
      next,
    }
    return { status: 200, body }
  },
})
