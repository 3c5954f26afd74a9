/** Administration of operators: the list, their sessions, and taking access away or giving it. */
import type { Identity } from '../../../identity/identity.ts'
import {
  changeOperator,
  listOperatorSessions,
  listOperators,
  type OperatorChange,
  type OperatorChanged as Outcome,
} from '../../../identity/operators.ts'
import {
  OperatorChanged,
  OperatorChangeRequest,
  OperatorPage,
  OperatorsQuery,
} from '../../../wire/access.ts'
import { Sessions, SessionsQuery } from '../../../wire/auth.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import { CHANGE_ERRORS, operatorRoute, type Route } from '../route.ts'
import { grantField, sessionsBody } from './fields.ts'

export interface OperatorsApp {
  readonly identity: Identity
}

export const operatorRoutes: readonly Route<OperatorsApp>[] = [
  operatorRoute({
    method: 'GET',
    path: '/v1/access/operators',
    name: 'listOperators',
    summary: 'All operators, the newest first, with their grants.',
    capability: 'operators:manage',
    query: OperatorsQuery,
    replies: { 200: OperatorPage },
    async handle({ app, actor, query }) {
      const { after = null, limit = PAGE_DEFAULT } = query
      const { items, next } = await listOperators(app.identity, actor, { after, limit })
      const body: OperatorPage = {
        version: 1,
        items: items.map((item) => ({
          ...item,
          createdAtMicros: String(item.createdAtMicros),
          disabledAtMicros: microsField(item.disabledAtMicros),
          lastUsedAtMicros: microsField(item.lastUsedAtMicros),
          grants: item.grants.map(grantField),
          identities: item.identities.map(({ providerId, linkedAtMicros }) => {
            return { providerId, linkedAtMicros: String(linkedAtMicros) }
          }),
        })),
        next,
      }
      return { status: 200, body }
    },
  }),

  operatorRoute({
    method: 'GET',
    path: '/v1/access/operators/:operatorId/sessions',
    name: 'listOperatorSessions',
    summary: 'The active sessions of an operator, the newest first.',
    capability: 'operators:manage',
    query: SessionsQuery,
    replies: { 200: Sessions },
    errors: ['PLATFORM_NOT_FOUND'],
    async handle({ app, actor, params: { operatorId }, query }) {
      const { after = null, limit = PAGE_DEFAULT } = query
      const input = { operatorId, after, limit }
      const page = await listOperatorSessions(app.identity, actor, input)
      return { status: 200, body: sessionsBody(page, actor.sessionId) }
    },
  }),

  changeRoute('disable', 'Disables an operator and revokes its sessions; not the last owner.'),
  changeRoute('enable', 'Enables an operator, with the grants that it had.'),
]

function changeRoute(verb: OperatorChange['verb'], summary: string): Route<OperatorsApp> {
  return operatorRoute({
    method: 'POST',
    path: `/v1/access/operators/:operatorId/${verb}`,
    name: `${verb}Operator`,
    summary,
    capability: 'operators:manage',
    operationId: 'required',
    body: { schema: OperatorChangeRequest },
    replies: { 200: OperatorChanged },
    errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
    async handle({ app, actor, params, body, operationId, requestId }) {
      const changedAtMicros = BigInt(body.changedAtMicros)
      const change = { verb, ...params, operationId, changedAtMicros, requestId }
      return { status: 200, body: changedBody(await changeOperator(app.identity, actor, change)) }
    },
  })
}

function changedBody({ operatorId, disabledAtMicros, ...outcome }: Outcome): OperatorChanged {
  const { operationId, kind, replayed, authorizationRevision, createdAtMicros } = outcome
  return {
    version: 1,
    operatorId,
    disabledAtMicros: microsField(disabledAtMicros),
    operation: {
      version: 1,
      operationId,
      kind,
      outcome: 'applied',
      replayed,
      revision: String(authorizationRevision),
      createdAtMicros: String(createdAtMicros),
    },
  }
}

function microsField(micros: bigint | null): string | null {
  return micros === null ? null : String(micros)
}
