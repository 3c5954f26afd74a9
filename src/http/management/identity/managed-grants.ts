/** Reconciliation by the managed source. Without a configured source, this route is 404. */
import { Fault } from '../../../errors/fault.ts'
import { reconcileGrants, requireEnrollmentToken } from '../../../identity/managed-grants.ts'
import { ENROLLMENT_HEADER, ManagedGrants, ManagedGrantsRequest } from '../../../wire/oidc.ts'
import { CHANGE_ERRORS, publicRoute, type Route } from '../route.ts'
import type { AuthApp } from './auth.ts'

export const managedGrantRoutes: readonly Route<AuthApp>[] = [
  publicRoute({
    method: 'PUT',
    path: '/v1/auth/managed/operators/:operatorId/grants',
    name: 'reconcileGrants',
    summary: 'Replaces all grants that the managed source gives an operator.',
    body: { schema: ManagedGrantsRequest },
    replies: { 200: ManagedGrants },
    errors: [
      'PLATFORM_MANAGED_SOURCE_CONFLICT',
      'PLATFORM_MANAGED_SOURCE_STALE',
      'PLATFORM_NOT_FOUND',
      ...CHANGE_ERRORS,
    ],
    authorities: [['managedSource']],
    // One gateway calls for all operators, and its token is checked without a look-up.
    rate: 'none',
    admit({ app, request }) {
      const { managedSource } = app.identity
      if (managedSource === null) throw new Fault('PLATFORM_NOT_FOUND')
      // With a session, the caller is a person's client, and only the gateway may call this route.
      if (request.headers.has('authorization')) {
        throw new Fault('PLATFORM_AUTHENTICATION_FAILED', {
          detail: 'both a session and an enrollment token were presented',
        })
      }
      requireEnrollmentToken(managedSource, request.headers.get(ENROLLMENT_HEADER))
    },
    async handle({ app, params, body, requestId }) {
      const sourceRevision = BigInt(body.sourceRevision)
      const input = { ...params, sourceRevision, grants: body.grants, requestId }
      const done = await reconcileGrants(app.identity, app.identity.managedSource!, input)
      const answer: ManagedGrants = {
        version: 1,
        applied: done.applied,
        replayed: done.replayed,
        sourceRevision: String(done.sourceRevision),
        authorizationRevision: String(done.authorizationRevision),
      }
      return { status: 200, body: answer }
    },
  }),
]
