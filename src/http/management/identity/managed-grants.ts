/** Reconciliation by the managed source. Where none is configured this route does not exist. */
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
    summary: 'The grants that the managed source gives an operator, all of them.',
    body: { schema: ManagedGrantsRequest },
    replies: { 200: ManagedGrants },
    errors: [
      'PLATFORM_MANAGED_SOURCE_CONFLICT',
      'PLATFORM_MANAGED_SOURCE_STALE',
      'PLATFORM_NOT_FOUND',
      ...CHANGE_ERRORS,
    ],
    authorities: [['managedSource']],
    // One gateway speaks for every operator; what it presents costs no look-up.
    rate: 'none',
    admit({ app, request }) {
      const { managedSource } = app.identity
      if (managedSource === null) throw new Fault('PLATFORM_NOT_FOUND')
      // A session says that a person's client reached a route that is the gateway's alone.
      if (request.headers.has('authorization')) {
        throw new Fault('PLATFORM_AUTHENTICATION_FAILED', { detail: 'two authorities' })
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
