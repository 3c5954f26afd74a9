/** Login, sessions and what an operator may reach (wire decisions, section 2). */
import * as z from 'zod'
import { GrantField } from './access.ts'
import { CapabilityField, idField, Micros, Name, PAGE_MAX, PageLimit, U64 } from './fields.ts'

/** Longer than any credential; whether it is one is decided by the rule, with a 401. */
const CREDENTIAL = z.string().max(256)

export const ExchangeRequest = z.strictObject({
  code: CREDENTIAL,
  deviceName: Name.exactOptional(),
  /** For a bootstrap code only. */
  operatorName: Name.exactOptional(),
})

export const RefreshRequest = z.strictObject({ refreshToken: CREDENTIAL })

export const OperatorField = z.strictObject({
  operatorId: idField('opr'),
  operatorName: Name,
  createdAtMicros: Micros,
})
export type OperatorField = z.infer<typeof OperatorField>

export const SessionField = z.strictObject({
  sessionId: idField('ops'),
  deviceName: Name.nullable(),
  createdAtMicros: Micros,
  lastUsedAtMicros: Micros,
  accessExpiresAtMicros: Micros,
  refreshExpiresAtMicros: Micros,
  current: z.boolean(),
})
export type SessionField = z.infer<typeof SessionField>

export const Login = z.strictObject({
  version: z.literal(1),
  operator: OperatorField,
  session: SessionField,
  grants: GrantField.array(),
  tokenType: z.literal('Bearer'),
  accessToken: CREDENTIAL,
  refreshToken: CREDENTIAL,
})
export type Login = z.infer<typeof Login>

export const AuthConfig = z.strictObject({
  version: z.literal(1),
  methods: z.array(z.enum(['invitation', 'browser_oidc', 'helper_token'])),
  managementOrigin: z.string().nullable(),
})
export type AuthConfig = z.infer<typeof AuthConfig>

export const Self = z.strictObject({
  version: z.literal(1),
  operator: OperatorField,
  session: SessionField,
  grants: GrantField.array(),
  authorizationRevision: U64,
})
export type Self = z.infer<typeof Self>

/** Entries of one answer (Document 1, Limits). */
export const RESOURCES_MAX = 1_024
/** Bytes of one answer (Document 1, Limits). */
export const RESOURCES_BYTES_MAX = 1024 * 1024

export const ResourceField = z.strictObject({
  projectId: idField('prj'),
  environmentId: idField('env'),
  name: z.string(),
  slug: z.string(),
  managementOrigin: z.string().nullable(),
  capabilities: CapabilityField.array(),
})
export type ResourceField = z.infer<typeof ResourceField>

export const Resources = z.strictObject({
  version: z.literal(1),
  resources: ResourceField.array().max(RESOURCES_MAX),
})
export type Resources = z.infer<typeof Resources>

export const SessionsQuery = z.strictObject({
  limit: PageLimit.exactOptional(),
  /** The `next` of the page before. */
  after: idField('ops').exactOptional(),
})

export const Sessions = z.strictObject({
  version: z.literal(1),
  sessions: SessionField.array().max(PAGE_MAX),
  /** `after` of the next page; null at the end. */
  next: idField('ops').nullable(),
})
export type Sessions = z.infer<typeof Sessions>
