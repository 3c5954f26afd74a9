/** Login, sessions and what an operator may reach (wire decisions, section 2). */
import { GrantField } from './access.ts'
import { CapabilityField, idField, Micros, Name, U64 } from './fields.ts'
import { message } from './schema.ts'

/** Longer than any credential; whether it is one is decided by the rule, with a 401. */
const CREDENTIAL = 'string <= 256'

export const ExchangeRequest = message({
  code: CREDENTIAL,
  'deviceName?': Name,
  /** For a bootstrap code only. */
  'operatorName?': Name,
})

export const RefreshRequest = message({ refreshToken: CREDENTIAL })

export const OperatorField = message({
  operatorId: idField('opr'),
  operatorName: Name,
  createdAtMicros: Micros,
})
export type OperatorField = typeof OperatorField.infer

export const SessionField = message({
  sessionId: idField('ops'),
  deviceName: Name.or('null'),
  createdAtMicros: Micros,
  lastUsedAtMicros: Micros,
  accessExpiresAtMicros: Micros,
  refreshExpiresAtMicros: Micros,
  current: 'boolean',
})
export type SessionField = typeof SessionField.infer

export const Login = message({
  version: '1',
  operator: OperatorField,
  session: SessionField,
  grants: GrantField.array(),
  tokenType: "'Bearer'",
  accessToken: CREDENTIAL,
  refreshToken: CREDENTIAL,
})
export type Login = typeof Login.infer

export const AuthConfig = message({
  version: '1',
  methods: "('invitation' | 'browser_oidc' | 'helper_token')[]",
  managementOrigin: 'string | null',
})
export type AuthConfig = typeof AuthConfig.infer

export const Self = message({
  version: '1',
  operator: OperatorField,
  session: SessionField,
  grants: GrantField.array(),
  authorizationRevision: U64,
})
export type Self = typeof Self.infer

/** Entries of one answer (Document 1, Limits). */
export const RESOURCES_MAX = 1_024
/** Bytes of one answer (Document 1, Limits). */
export const RESOURCES_BYTES_MAX = 1024 * 1024

export const ResourceField = message({
  projectId: idField('prj'),
  environmentId: idField('env'),
  name: 'string',
  slug: 'string',
  managementOrigin: 'string | null',
  capabilities: CapabilityField.array(),
})
export type ResourceField = typeof ResourceField.infer

export const Resources = message({
  version: '1',
  resources: ResourceField.array().atMostLength(RESOURCES_MAX),
})
export type Resources = typeof Resources.infer

export const Sessions = message({ version: '1', sessions: SessionField.array() })
export type Sessions = typeof Sessions.infer
