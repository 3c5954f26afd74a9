/** The security audit, a page at a time. */
import { Fault } from '../../errors/fault.ts'
import { readAuditPage } from '../../identity/audit-pages.ts'
import type { Identity } from '../../identity/identity.ts'
import { parseId } from '../../value/ids.ts'
import { AUDIT_PAGE_DEFAULT, AUDIT_PAGE_MAX, type AuditPage } from '../../wire/audit.ts'
import { readPageLimit } from '../queries.ts'
import { operatorRoute, type Route } from '../route.ts'

export interface AuditApp {
  readonly identity: Identity
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,18})$/
/** The greatest bigint of the database. */
const MICROS_MAX = 2n ** 63n - 1n
const OPERATION = /^[a-z][a-z0-9_.-]{0,127}$/
const CURSOR = /^[A-Za-z0-9_-]{1,256}$/

export const auditRoutes: readonly Route<AuditApp>[] = [
  operatorRoute({
    method: 'GET',
    path: '/v1/access/audit',
    capability: 'operators:manage',
    query: ['operator', 'operation', 'from', 'to', 'after', 'limit'],
    async handle({ app, actor, query }) {
      const { operator, operation } = query
      const { items, next } = await readAuditPage(app.identity, actor, {
        actor: operator === undefined ? null : parseId('opr', operator),
        operation: readText(operation, 'operation', OPERATION, 'the name of an operation'),
        fromMicros: readMicros(query.from, 'from') ?? 0n,
        toMicros: readMicros(query.to, 'to') ?? MICROS_MAX,
        after: readText(query.after, 'after', CURSOR, 'a cursor of this list'),
        limit: readPageLimit(query.limit, { most: AUDIT_PAGE_MAX, usual: AUDIT_PAGE_DEFAULT }),
      })
      const body: AuditPage = {
        version: 1,
        items: items.map((record) => ({ ...record, atMicros: String(record.atMicros) })),
        next,
      }
      return { status: 200, body }
    },
  }),
]

function readText(
  text: string | undefined,
  name: string,
  form: RegExp,
  rule: string,
): string | null {
  if (text === undefined) return null
  if (!form.test(text)) throw invalid(name, rule)
  return text
}

function readMicros(text: string | undefined, name: string): bigint | null {
  if (text === undefined) return null
  const micros = DECIMAL.test(text) ? BigInt(text) : null
  if (micros === null || micros > MICROS_MAX) {
    throw invalid(name, 'canonical decimal microseconds')
  }
  return micros
}

function invalid(name: string, rule: string): Fault {
  return new Fault('PLATFORM_REQUEST_INVALID', { violations: [{ path: `query.${name}`, rule }] })
}
