/** Device sessions: list of the caller, and revocation. */
import { deriveSession } from '../../../identity/derived-sessions.ts'
import type { Identity } from '../../../identity/identity.ts'
import { listSessions, revokeSession } from '../../../identity/sessions.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import { sessionOperations } from '../../../wire/operations/identity/sessions.ts'
import { bind, type Route } from '../route.ts'
import { loginBody, sessionsBody } from './fields.ts'

export interface SessionsApp {
  readonly identity: Identity
}

export const sessionRoutes: readonly Route<SessionsApp>[] = bind(sessionOperations, {
  async listSessions({ app, actor, query }) {
    const { after = null, limit = PAGE_DEFAULT } = query
    const page = await listSessions(app.identity, actor, { after, limit })
    return { status: 200, body: sessionsBody(page, actor.sessionId) }
  },

  async revokeSession({ app, actor, params, requestId }) {
    await revokeSession(app.identity, actor, { ...params, requestId })
    return { status: 204 }
  },

  async deriveSession({ app, actor, body, requestId }) {
    const login = await deriveSession(app.identity, actor, { ...body, requestId })
    return { status: 201, body: loginBody(login) }
  },
})
