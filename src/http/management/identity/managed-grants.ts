/** Reconciliation by the managed source. Without a configured source, this route is 404. */
import { Fault } from '../../../errors/fault.ts'
import { reconcileGrants, requireEnrollmentToken } from '../../../identity/managed-grants.ts'
import { ENROLLMENT_HEADER, type ManagedGrants } from '../../../wire/identity/oidc.ts'
import { managedGrantOperations } from '../../../wire/operations/identity/managed-grants.ts'
import { bind, type Route } from '../route.ts'
import type { AuthApp } from './auth.ts'

export const managedGrantRoutes: readonly Route<AuthApp>[] = bind(managedGrantOperations, {
  reconcileGrants: {
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
  },
})
