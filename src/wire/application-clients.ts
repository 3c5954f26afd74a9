/** Application Clients and their credentials (wire decisions, section 3). */
import { idField, Micros, Name } from './fields.ts'
import { message } from './schema.ts'

export const ApplicationScopeField = message(
  "'action' | 'mutation' | 'query' | 'realtime' | 'workspace'",
)
/** Each scope at most once, which is left to the rule. */
const Scopes = ApplicationScopeField.array().atMostLength(5)
const Kind = message("'public' | 'confidential' | 'development'")
const RateLimit = message('1 <= number.integer <= 1000000').or('null')

/** The caller pins ID and time, so that an exact replay can be told from a reuse. */
export const ClientRequest = message({
  clientId: idField('app'),
  name: Name,
  kind: Kind,
  maximumScopes: Scopes,
  createdAtMicros: Micros,
})

export const CredentialRequest = message({
  credentialId: idField('crd'),
  name: Name,
  scopes: Scopes,
  createdAtMicros: Micros,
  /** Requests a second. */
  'rateLimit?': RateLimit,
})

/** The replacement. What is left out is as with the credential that it replaces. */
export const RotateRequest = message({
  credentialId: idField('crd'),
  createdAtMicros: Micros,
  'name?': Name,
  'scopes?': Scopes,
  'rateLimit?': RateLimit,
})

export const ClientField = ClientRequest
export type ClientField = typeof ClientField.infer

export const CredentialField = message({
  credentialId: idField('crd'),
  clientId: idField('app'),
  name: Name,
  scopes: Scopes,
  state: "'active' | 'revoked' | 'deleted'",
  createdAtMicros: Micros,
  revokedAtMicros: Micros.or('null'),
  lastUsedAtMicros: Micros.or('null'),
  rateLimit: RateLimit,
  replaces: idField('crd').or('null'),
})
export type CredentialField = typeof CredentialField.infer

export const ClientCreated = message({ version: '1', client: ClientField, replayed: 'boolean' })
export type ClientCreated = typeof ClientCreated.infer

export const ClientList = message({ version: '1', clients: ClientField.array() })
export type ClientList = typeof ClientList.infer

export const CredentialCreated = message({
  version: '1',
  credential: CredentialField,
  key: 'string <= 64 | null',
  secretShownOnce: 'boolean',
  replayed: 'boolean',
})
export type CredentialCreated = typeof CredentialCreated.infer

export const CredentialRevoked = message({ version: '1', credential: CredentialField })
export type CredentialRevoked = typeof CredentialRevoked.infer

export const CredentialList = message({ version: '1', credentials: CredentialField.array() })
export type CredentialList = typeof CredentialList.infer
