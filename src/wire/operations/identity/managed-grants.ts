/** Reconciliation by the managed source. Without a configured source, this route is 404. */
import { ManagedGrants, ManagedGrantsRequest } from '../../identity/oidc.ts'
import { CHANGE_ERRORS, publicOperation } from '../operation.ts'

export const reconcileGrants = publicOperation({
  method: 'PUT',
  path: '/v1/auth/managed/operators/:operatorId/grants',
  name: 'reconcileGrants',
  summary: 'Replaces all grants that the managed source gives an operator.',
  body: { schema: ManagedGrantsRequest },
  replay: 'safe',
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
})

export const managedGrantOperations = { reconcileGrants }
