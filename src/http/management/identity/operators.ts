/** Administration of operators: the list, their sessions, their grants, and their state. */
import { changeGrant } from '../../../identity/grant-changes.ts'
import type { Identity } from '../../../identity/identity.ts'
import {
  changeOperator,
  listOperatorSessions,
  listOperators,
  type OperatorChange,
  type OperatorChanged as Outcome,
} from '../../../identity/operators.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import type { OperatorChanged, OperatorPage } from '../../../wire/identity/access.ts'
import { operatorOperations } from '../../../wire/operations/identity/operators.ts'
import { bind, type Call, type Route } from '../route.ts'
import { grantField, sessionsBody } from './fields.ts'

export interface OperatorsApp {
  readonly identity: Identity
}

export const operatorRoutes: readonly Route<OperatorsApp>[] = bind(operatorOperations, {
  async listOperators({ app, actor, query }) {
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

  async listOperatorSessions({ app, actor, params: { operatorId }, query }) {
    const { after = null, limit = PAGE_DEFAULT } = query
    const input = { operatorId, after, limit }
    const page = await listOperatorSessions(app.identity, actor, input)
    return { status: 200, body: sessionsBody(page, actor.sessionId) }
  },

  disableOperator: change('disable'),
  enableOperator: change('enable'),

  async changeGrant({ app, actor, params: { operatorId }, body, requestId }) {
    const input = { ...body, operatorId, requestId }
    const { applied, grants } = await changeGrant(app.identity, actor, input)
    return {
      status: 200,
      body: { version: 1, operatorId, applied, grants: grants.map(grantField) },
    }
  },
})

type ChangeCall = Call<
  OperatorsApp,
  ':operatorId',
  { readonly changedAtMicros: string },
  'required'
>

function change(verb: OperatorChange['verb']) {
  return async ({ app, actor, params, body, operationId, requestId }: ChangeCall) => {
    const changedAtMicros = BigInt(body.changedAtMicros)
    const { operatorId } = params
    const input = { verb, operatorId, operationId, changedAtMicros, requestId }
    return {
      status: 200 as const,
      body: changedBody(await changeOperator(app.identity, actor, input)),
    }
  }
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
