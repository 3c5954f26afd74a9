/** Login with an external identity, and grants of a managed source (wire decisions, section 2). */
import * as z from 'zod'
import { EnvironmentScope, ProjectScope } from './access.ts'
import { Name, RoleField, U64 } from './fields.ts'

/** Grants of one operator in one request; a body of 16 KiB has no room for more. */
const MANAGED_GRANTS_MAX = 128

/** 1 to 2^64 - 1 as canonical decimal text, or as a JSON integer as far as those are exact. */
const SourceRevision = z.union([
  U64.regex(/^[1-9]/).describe('a canonical unsigned 64-bit integer from 1 up'),
  z.int().min(1),
])

/** A managed source owns grants inside of Projects, never the installation. */
const ManagedGrant = z.strictObject({
  scope: z.discriminatedUnion('kind', [ProjectScope, EnvironmentScope]),
  role: RoleField,
})

export const ManagedGrantsRequest = z.strictObject({
  sourceRevision: SourceRevision,
  grants: ManagedGrant.array().max(MANAGED_GRANTS_MAX),
})

export const OidcLoginRequest = z.strictObject({
  code: z.string().max(256).exactOptional(),
  deviceName: Name.exactOptional(),
  managedEnrollment: ManagedGrantsRequest.extend({ operatorName: Name }).exactOptional(),
})

/** The token of the managed source, as a bearer. */
export const ENROLLMENT_HEADER = 'service-managed-enrollment'

export const ManagedGrants = z.strictObject({
  version: z.literal(1),
  applied: z.boolean(),
  replayed: z.boolean(),
  sourceRevision: U64,
  authorizationRevision: U64,
})
export type ManagedGrants = z.infer<typeof ManagedGrants>

export const OidcConfig = z.strictObject({
  version: z.literal(1),
  issuer: z.string(),
  authorizationEndpoint: z.string(),
  tokenEndpoint: z.string(),
  clientId: z.string(),
  scopes: z.array(z.string()),
  resource: z.string().nullable(),
})
export type OidcConfig = z.infer<typeof OidcConfig>
