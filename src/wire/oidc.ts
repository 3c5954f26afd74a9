/** Login with an external identity, and grants of a managed source (wire decisions, section 2). */
import { idField, Name, RoleField, U64 } from './fields.ts'
import { message } from './schema.ts'

/** Grants of one operator in one request; a body of 16 KiB has no room for more. */
const MANAGED_GRANTS_MAX = 128

/** 1 to 2^64 - 1 as canonical decimal text, or as a JSON integer as far as those are exact. */
const SourceRevision = U64.and(/^[1-9]/).or(`1 <= number.integer <= ${Number.MAX_SAFE_INTEGER}`)

/** A managed source owns grants inside of Projects, never the installation. */
const ManagedScope = message({
  kind: "'project'",
  projectId: idField('prj'),
  environmentId: 'null',
}).or({ kind: "'environment'", projectId: idField('prj'), environmentId: idField('env') })

const ManagedGrant = message({ scope: ManagedScope, role: RoleField })

export const ManagedGrantsRequest = message({
  sourceRevision: SourceRevision,
  grants: ManagedGrant.array().atMostLength(MANAGED_GRANTS_MAX),
})

export const OidcLoginRequest = message({
  'code?': 'string <= 256',
  'deviceName?': Name,
  'managedEnrollment?': {
    operatorName: Name,
    sourceRevision: SourceRevision,
    grants: ManagedGrant.array().atMostLength(MANAGED_GRANTS_MAX),
  },
})

/** The token of the managed source, as a bearer. */
export const ENROLLMENT_HEADER = 'service-managed-enrollment'

export const ManagedGrants = message({
  version: '1',
  applied: 'boolean',
  replayed: 'boolean',
  sourceRevision: U64,
  authorizationRevision: U64,
})
export type ManagedGrants = typeof ManagedGrants.infer

export const OidcConfig = message({
  version: '1',
  issuer: 'string',
  authorizationEndpoint: 'string',
  tokenEndpoint: 'string',
  clientId: 'string',
  scopes: 'string[]',
  resource: 'string | null',
})
export type OidcConfig = typeof OidcConfig.infer
