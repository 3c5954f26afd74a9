/** Device sessions: the caller's own, and the end of any. */
import type { Identity } from '../../identity/identity.ts'
import { listSessions, revokeSession } from '../../identity/sessions.ts'
import { parseId } from '../../value/ids.ts'
import type { Sessions } from '../../wire/auth.ts'
import { operatorRoute, type Route } from '../route.ts'
import { sessionField } from './identity-fields.ts'

export interface SessionsApp {
  readonly identity: Identity
}

export const sessionRoutes: readonly Route<SessionsApp>[] = [
  operatorRoute({
    method: 'GET',
    path: '/v1/auth/sessions',
    async handle({ app, actor }) {
      const sessions = await listSessions(app.identity, actor)
      const body: Sessions = {
        version: 1,
        sessions: sessions.map((session) => sessionField(session, actor.sessionId)),
      }
      return { status: 200, body }
    },
  }),

  operatorRoute({
    method: 'DELETE',
    path: '/v1/auth/sessions/:sessionId',
    async handle({ app, actor, params, requestId }) {
      const sessionId = parseId('ops', params.sessionId)
      await revokeSession(app.identity, actor, { sessionId, requestId })
      return { status: 204 }
    },
  }),
]
