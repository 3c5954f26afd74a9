/** Device sessions: list of the caller, and revocation. */
import { DerivationRequest, Login, Sessions, SessionsQuery } from '../../identity/auth.ts'
import { CHANGE_ERRORS, operatorOperation } from '../operation.ts'

export const listSessions = operatorOperation({
  method: 'GET',
  path: '/v1/auth/sessions',
  name: 'listSessions',
  summary: 'Lists the active sessions of the caller, newest first.',
  query: SessionsQuery,
  replies: { 200: Sessions },
})

export const revokeSession = operatorOperation({
  method: 'DELETE',
  path: '/v1/auth/sessions/:sessionId',
  name: 'revokeSession',
  summary: 'Revokes a session. The session of another operator requires operators:manage.',
  replay: 'safe',
  replies: { 204: null },
  errors: ['PLATFORM_ACCESS_DENIED', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
})

/** Not repeatable: a client that lost the response derives another session. */
export const deriveSession = operatorOperation({
  method: 'POST',
  path: '/v1/auth/sessions/derived',
  name: 'deriveSession',
  summary: 'Opens a session with a part of the rights of the caller, which ends with its session.',
  body: { schema: DerivationRequest },
  replay: 'unsafe',
  replies: { 201: Login },
  errors: ['PLATFORM_ACCESS_DENIED', 'PLATFORM_RATE_LIMITED', ...CHANGE_ERRORS],
  cache: 'no-store, max-age=0',
})

/** `derived` comes before the paths that match any name. */
export const sessionOperations = { listSessions, deriveSession, revokeSession }
