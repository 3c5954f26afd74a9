/**
 * Login with an external identity, and grants of a managed source (contract/wire.md, Identity
 * routes).
 */

import { integer, listUpTo, Name, RoleField, textUpTo, U64 } from '../fields.ts'
import { type Infer, schema } from '../schema.ts'
import { EnvironmentScope, ProjectScope } from './access.ts'

/** Grants of one operator in one request, as many as fit a body of 16 KiB. */
const MANAGED_GRANTS_MAX = 128

/** 1 to 2^64 - 1 as canonical decimal text, or as an exact JSON integer. */
const SourceRevision = schema([
  [[U64, '&', /^[1-9]/], '@', 'a canonical unsigned 64-bit integer from 1 up'],
  '|',
  integer(1),
])

/** A managed source owns grants within Projects, never of the installation. */
const ManagedGrant = schema({ scope: [ProjectScope, '|', EnvironmentScope], role: RoleField })

export const ManagedGrantsRequest = schema({
  sourceRevision: SourceRevision,
  grants: listUpTo(ManagedGrant, MANAGED_GRANTS_MAX),
})

export const OidcLoginRequest = schema({
  'code?': textUpTo(256),
  'deviceName?': Name,
  'managedEnrollment?': { '...': ManagedGrantsRequest, operatorName: Name },
})

/** Header with the token of the managed source, after `Bearer`. */
export const ENROLLMENT_HEADER = 'service-managed-enrollment'

export const ManagedGrants = schema({
  version: '1',
  applied: 'boolean',
  replayed: 'boolean',
  sourceRevision: U64,
  authorizationRevision: U64,
})
export type ManagedGrants = Infer<typeof ManagedGrants>

export const OidcConfig = schema({
  version: '1',
  issuer: 'string',
  authorizationEndpoint: 'string',
  tokenEndpoint: 'string',
  clientId: 'string',
  scopes: 'string[]',
  resource: 'string | null',
})
export type OidcConfig = Infer<typeof OidcConfig>
