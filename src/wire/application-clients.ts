/** Application Clients and their credentials (wire decisions, section 3). */
import * as z from 'zod'
import { idField, Micros, Name } from './fields.ts'
import { documented } from './schema.ts'

export const ApplicationScopeField = z.enum([
  'action',
  'mutation',
  'query',
  'realtime',
  'workspace',
])
/** One at least, each once. */
const Scopes = documented(ApplicationScopeField.array().max(5), { minItems: 1, uniqueItems: true })
const Kind = z.enum(['public', 'confidential', 'development'])
const RateLimit = z.int().min(1).max(1_000_000).nullable()

/** The caller pins ID and time, so that an exact replay can be told from a reuse. */
export const ClientRequest = documented(
  z.strictObject({
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

export const CredentialRequest = z.strictObject({
  credentialId: idField('crd'),
  name: Name,
  scopes: Scopes,
  createdAtMicros: Micros,
  /** Requests a second. */
  rateLimit: RateLimit.exactOptional(),
})

/** The replacement. What is left out is as with the credential that it replaces. */
export const RotateRequest = z.strictObject({
  credentialId: idField('crd'),
  createdAtMicros: Micros,
  name: Name.exactOptional(),
  scopes: Scopes.exactOptional(),
  rateLimit: RateLimit.exactOptional(),
})

export const ClientField = ClientRequest
export type ClientField = z.infer<typeof ClientField>

export const CredentialField = z.strictObject({
  credentialId: idField('crd'),
  clientId: idField('app'),
  name: Name,
  scopes: Scopes,
  state: z.enum(['active', 'revoked', 'deleted']),
  createdAtMicros: Micros,
  revokedAtMicros: Micros.nullable(),
  lastUsedAtMicros: Micros.nullable(),
  rateLimit: RateLimit,
  replaces: idField('crd').nullable(),
})
export type CredentialField = z.infer<typeof CredentialField>

export const ClientCreated = z.strictObject({
  version: z.literal(1),
  client: ClientField,
  replayed: z.boolean(),
})
export type ClientCreated = z.infer<typeof ClientCreated>

export const ClientList = z.strictObject({ version: z.literal(1), clients: ClientField.array() })
export type ClientList = z.infer<typeof ClientList>

export const CredentialCreated = z.strictObject({
  version: z.literal(1),
  credential: CredentialField,
  key: z.string().max(64).nullable(),
  secretShownOnce: z.boolean(),
  replayed: z.boolean(),
})
export type CredentialCreated = z.infer<typeof CredentialCreated>

export const CredentialRevoked = z.strictObject({
  version: z.literal(1),
  credential: CredentialField,
})
export type CredentialRevoked = z.infer<typeof CredentialRevoked>

export const CredentialList = z.strictObject({
  version: z.literal(1),
  credentials: CredentialField.array(),
})
export type CredentialList = z.infer<typeof CredentialList>
