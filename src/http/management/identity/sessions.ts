/** Device sessions: list of the caller, and revocation. */
import type { Identity } from '../../../identity/identity.ts'
import { listSessions, revokeSession } from '../../../identity/sessions.ts'
import { Sessions, SessionsQuery } from '../../../wire/auth.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import { CHANGE_ERRORS, operatorRoute, type Route } from '../route.ts'
import { sessionsBody } from './fields.ts'

export interface SessionsApp {
  readonly identity: Identity
}

export const sessionRoutes: readonly Route<SessionsApp>[] = [
  operatorRoute({
    method: 'GET',
    path: '/v1/auth/sessions',
    name: 'listSessions',
    summary: 'Lists the active sessions of the caller, newest first.',
    query: SessionsQuery,
    replies: { 200: Sessions },
    async handle({ app, actor, query }) {
      const { after = null, limit = PAGE_DEFAULT } = query
      const page = await listSessions(app.identity, actor, { after, limit })
      return { status: 200, body: sessionsBody(page, actor.sessionId) }
    },
  }),

  operatorRoute({
    method: 'DELETE',
    path: '/v1/auth/sessions/:sessionId',
    name: 'revokeSession',
    summary: 'Revokes a session. The session of another operator requires operators:manage.',
    replies: { 204: null },
    errors: ['PLATFORM_ACCESS_DENIED', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
    async handle({ app, actor, params, requestId }) {
      await revokeSession(app.identity, actor, { ...params, requestId })
      return { status: 204 }
    },
  }),
]
