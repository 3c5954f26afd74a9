/** Application Clients and their credentials (contract/wire.md, Application Clients). */
import { APPLICATION_SCOPES } from '../value/application-scopes.ts'
import { documented, idField, integer, listUpTo, Micros, Name, secretUpTo } from './fields.ts'
import { type Infer, schema } from './schema.ts'

export const ApplicationScopeField = schema(['===', ...APPLICATION_SCOPES])
/** A list of at least one scope, without duplicates. */
const Scopes = documented(listUpTo(ApplicationScopeField, 5), { minItems: 1, uniqueItems: true })
const Kind = schema("'public' | 'confidential' | 'development'")
const RateLimit = schema([integer(1, 1_000_000), '|', 'null'])

/** The caller chooses ID and time, which distinguishes an exact replay from a reuse. */
export const ClientRequest = documented(
  schema({
    clientId: idField('app'),
    name: Name,
    kind: Kind,
    maximumScopes: documented(Scopes, {
      description: 'scopes, each once; of a development Client workspace alone',
    }),
    createdAtMicros: Micros,
  }),
  {
    if: { properties: { kind: { const: 'development' } }, required: ['kind'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { properties: { maximumScopes: { items: { const: 'workspace' } } } },
  },
)

export const CredentialRequest = schema({
  credentialId: idField('crd'),
  name: Name,
  scopes: Scopes,
  createdAtMicros: Micros,
  /** Requests a second. */
  'rateLimit?': RateLimit,
})

/** The replacement. Absent fields are copied from the replaced credential. */
export const RotateRequest = schema({
  credentialId: idField('crd'),
  createdAtMicros: Micros,
  'name?': Name,
  'scopes?': Scopes,
  'rateLimit?': RateLimit,
})

export const ClientField = ClientRequest
export type ClientField = Infer<typeof ClientField>

export const CredentialField = schema({
  credentialId: idField('crd'),
  clientId: idField('app'),
  name: Name,
  scopes: Scopes,
  state: "'active' | 'revoked' | 'deleted'",
  createdAtMicros: Micros,
  revokedAtMicros: [Micros, '|', 'null'],
  lastUsedAtMicros: [Micros, '|', 'null'],
  rateLimit: RateLimit,
  replaces: [idField('crd'), '|', 'null'],
})
export type CredentialField = Infer<typeof CredentialField>

export const ClientCreated = schema({ version: '1', client: ClientField, replayed: 'boolean' })
export type ClientCreated = Infer<typeof ClientCreated>

export const ClientList = schema({ version: '1', clients: [ClientField, '[]'] })
export type ClientList = Infer<typeof ClientList>

export const CredentialCreated = schema({
  version: '1',
  credential: CredentialField,
  key: [secretUpTo(64), '|', 'null'],
  secretShownOnce: 'boolean',
  replayed: 'boolean',
})
export type CredentialCreated = Infer<typeof CredentialCreated>

export const CredentialRevoked = schema({ version: '1', credential: CredentialField })
export type CredentialRevoked = Infer<typeof CredentialRevoked>

export const CredentialList = schema({ version: '1', credentials: [CredentialField, '[]'] })
export type CredentialList = Infer<typeof CredentialList>
