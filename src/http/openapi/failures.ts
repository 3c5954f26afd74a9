/** Failures as response components, from the table of codes: one for each set of codes. */
import { CODES, type TableCode } from '../../errors/codes.ts'
import { KINDS } from '../../errors/kinds.ts'
import { ApplicationError, ManagementError } from '../../wire/errors.ts'
import { idField, text } from '../../wire/fields.ts'
import { HEADERS, type HeaderName, responseHeaders } from './headers.ts'
import type { Operation, Origin } from './operations.ts'
import type { Schemas } from './schemas.ts'
import { statusName } from './statuses.ts'

/** Statuses of the kinds that a Function may give to the errors it declares. */
const DECLARED = [KINDS.invalid, KINDS.forbidden, KINDS.not_found, KINDS.conflict]
const DECLARED_STATUSES: readonly number[] = DECLARED.map(({ status }) => status)
const DECLARED_CODE = text(/^APP_[A-Z][A-Z0-9_]{0,63}$/, 'an error that the Function declares')
const INVOCATION_ID = idField('ivc')
const ENVELOPES = { management: ManagementError, application: ApplicationError }

export class Failures {
  readonly #schemas: Schemas
  readonly #components = new Map<string, object>()
  /** The origin of each component: those of the other one have other headers and an envelope. */
  readonly #origins = new Map<string, Origin>()

  constructor(schemas: Schemas) {
    this.#schemas = schemas
  }

  /** Returns references to response components, by status. */
  of({ origin, errors, declaredErrors }: Operation): Record<string, object> {
    const byStatus = Map.groupBy(errors, (code): number => KINDS[CODES[code].kind].status)
    const possible = declaredErrors ? DECLARED_STATUSES : []
    const statuses = new Set([...byStatus.keys(), ...possible])
    return Object.fromEntries(
      [...statuses].sort().map((status) => {
        const codes = byStatus.get(status)?.toSorted() ?? []
        const declared = possible.includes(status)
        return [String(status), this.#reference(origin, status, codes, declared)]
      }),
    )
  }

  /** Returns the components, sorted by name. */
  components(): Record<string, object> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #reference(origin: Origin, status: number, codes: TableCode[], declared: boolean): object {
    const common = [...codes, ...(declared ? ['APP'] : [])].join('.')
    const isShared = (this.#origins.get(common) ?? origin) === origin
    const name = isShared ? common : `${common}.${origin}`
    if (!this.#components.has(name)) {
      this.#origins.set(name, origin)
      this.#components.set(name, this.#response(origin, status, codes, declared))
    }
    return { $ref: `#/components/responses/${name}` }
  }

  #response(origin: Origin, status: number, codes: TableCode[], declared: boolean): object {
    const lines = codes.map((code) => `- \`${code}\`: ${CODES[code].message}`)
    if (declared) lines.push('- `APP_*`: an error that the Function declares.')
    const known = codes.length > 0 ? [{ enum: codes }] : []
    const anyOf = declared ? [...known, this.#schemas.of(DECLARED_CODE)] : known
    const code = anyOf.length === 1 ? anyOf[0] : { anyOf }
    const envelope = this.#schemas.of(ENVELOPES[origin])
    const schema = { ...envelope, properties: { error: { properties: { code } } } }
    return {
      description: `${statusName(status)}.\n\n${lines.join('\n')}`,
      headers: this.#headers(origin, status),
      content: { 'application/json': { schema } },
    }
  }

  #headers(origin: Origin, status: number): object {
    const waits = status === 429 || status === 503
    const names: readonly HeaderName[] = [
      ...(['Cache-Control', 'X-Content-Type-Options', 'X-Service-Request-Id'] as const),
      ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
      ...(status === 405 ? (['Allow'] as const) : []),
      ...(waits ? (['Retry-After'] as const) : []),
      ...(status === 426 ? (['Sec-WebSocket-Version', 'Upgrade'] as const) : []),
    ]
    const invocation = {
      description: 'Present once the invocation exists.',
      schema: this.#schemas.of(INVOCATION_ID),
    }
    return {
      ...responseHeaders(names, 'no-store'),
      ...(origin === 'management' && {
        'X-Service-Version': { ...HEADERS['X-Service-Version'], required: false },
      }),
      ...(origin === 'application' && { 'X-Service-Invocation-Id': invocation }),
    }
  }
}
