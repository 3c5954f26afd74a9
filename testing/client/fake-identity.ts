/** The identity routes of the fake server: invitations and their records, sessions, audit. */
import { Fault } from '../../src/errors/fault.ts'
import { capabilitiesOfRole, type Role } from '../../src/value/capabilities.ts'
import type { Json } from '../../src/value/strict-json.ts'
import type { Recorded, Reply } from './fake-server.ts'

interface Ids {
  make(prefix: 'opi' | 'ops' | 'opr' | 'aud' | 'req'): string
}

type Object = { [key: string]: Json }

export class FakeIdentity {
  readonly invitations = new Map<string, { request: string; issued: Object; state: string }>()
  readonly auditItems: Json[] = []
  auditNext: string | null = null
  readonly otherSessionId: string
  readonly #ids: Ids
  readonly #code: string

  constructor(ids: Ids, code: string) {
    this.#ids = ids
    this.#code = code
    this.otherSessionId = ids.make('ops')
  }

  /** Returns null for a route that is not one of these. `login` is the login of the caller. */
  route(route: string, { headers, body }: Recorded, login: Object): Reply | null {
    const [, id] = /\/((?:opn|opi|ops)_\w+)$/.exec(route) ?? []
    const { operator, session, grants } = login
    switch (id === undefined ? route : route.replace(id, '{id}')) {
      case 'GET /v1/auth/me':
        return ok({ version: 1, operator, session, grants, authorizationRevision: '3' } as Object)
      case 'GET /v1/auth/sessions':
        return ok({ version: 1, sessions: [session!], next: null })
      case 'DELETE /v1/auth/sessions/{id}':
        if (id !== this.otherSessionId) throw new Fault('PLATFORM_NOT_FOUND')
        return { status: 204 }
      case 'POST /v1/access/invitations':
        return this.#issue(String(headers['idempotency-key']), body)
      case 'GET /v1/access/invitation-operations/{id}':
        return ok(this.#readOperation(id!))
      case 'DELETE /v1/access/invitations/{id}':
        return this.#revoke(id!)
      case 'GET /v1/access/audit':
        return ok({ version: 1, items: this.auditItems, next: this.auditNext })
      default:
        return null
    }
  }

  #issue(operationId: string, request: string): Reply {
    const known = this.invitations.get(operationId)
    if (known !== undefined) {
      if (known.request !== request) throw new Fault('PLATFORM_INVITATION_OPERATION_REUSED')
      return ok({ ...known.issued, secretShownOnce: false, replayed: true })
    }
    const { operatorName, role, scope } = JSON.parse(request)
    const issued = {
      version: 1,
      operationId,
      invitationId: this.#ids.make('opi'),
      operatorName,
      role,
      scope,
      capabilities: [...capabilitiesOfRole(role as Role)],
      createdAtMicros: '1800000000000000',
      expiresAtMicros: '1800001800000000',
      secretShownOnce: true,
      replayed: false,
    }
    this.invitations.set(operationId, { request, issued, state: 'pending' })
    return { status: 201, body: { ...issued, code: this.#code } }
  }

  #readOperation(operationId: string): Object {
    const known = this.invitations.get(operationId)
    if (known === undefined) throw new Fault('PLATFORM_NOT_FOUND')
    const { issued, state } = known
    return { ...issued, secretShownOnce: false, replayed: true, state }
  }

  #revoke(invitationId: string): Reply {
    const known = [...this.invitations.values()].find(
      ({ issued }) => issued.invitationId === invitationId,
    )
    if (known === undefined) throw new Fault('PLATFORM_NOT_FOUND')
    if (known.state === 'consumed') throw new Fault('PLATFORM_CONFLICT')
    known.state = 'revoked'
    return { status: 204 }
  }

  /** Returns a record as the audit route lists it. */
  auditRecord(operation: string): Object {
    const correlation = {
      sessionId: null,
      invitationId: null,
      operationId: null,
      credentialId: null,
    }
    return {
      auditId: this.#ids.make('aud'),
      operation,
      outcome: 'succeeded',
      actor: this.#ids.make('opr'),
      actorName: 'owner',
      subject: this.otherSessionId,
      subjectName: null,
      provenance: null,
      atMicros: '1800000000000000',
      requestId: this.#ids.make('req'),
      ...correlation,
    }
  }
}

function ok(body: Json): Reply {
  return { status: 200, body }
}
