/**
 * Login, sessions, and the Environments that an operator may link (contract/wire.md, Identity
 * routes).
 */

import { CAPABILITIES, DERIVED_SECONDS_MAX } from '../../value/capabilities.ts'
import {
  CapabilityField,
  idField,
  integer,
  listUpTo,
  Micros,
  Name,
  PAGE_MAX,
  PageLimit,
  PurposeField,
  secretUpTo,
  U64,
} from '../fields.ts'
import { rule } from '../rules.ts'
import { type Infer, schema } from '../schema.ts'
import { GrantField, ScopeField } from './access.ts'

/** Longer than any credential. The rule rejects invalid credentials with 401. */
const CREDENTIAL = secretUpTo(256)

export const ExchangeRequest = schema({
  code: CREDENTIAL,
  'deviceName?': Name,
  /** Only with a bootstrap code. */
  'operatorName?': Name,
})

export const RefreshRequest = schema({ refreshToken: CREDENTIAL })

export const OperatorField = schema({
  operatorId: idField('opr'),
  operatorName: Name,
  createdAtMicros: Micros,
})
export type OperatorField = Infer<typeof OperatorField>

export const SessionField = schema({
  sessionId: idField('ops'),
  deviceName: [Name, '|', 'null'],
  createdAtMicros: Micros,
  lastUsedAtMicros: Micros,
  accessExpiresAtMicros: Micros,
  refreshExpiresAtMicros: Micros,
  current: 'boolean',
  /** Only of a derived session. */
  'purpose?': PurposeField,
  /** The session that a derived one ends with. */
  'parentSessionId?': idField('ops'),
})
export type SessionField = Infer<typeof SessionField>

export const Login = schema({
  version: '1',
  operator: OperatorField,
  session: SessionField,
  grants: [GrantField, '[]'],
  tokenType: "'Bearer'",
  accessToken: CREDENTIAL,
  /** null for a workload, which logs in again instead, and for a derived session. */
  refreshToken: [CREDENTIAL, '|', 'null'],
})
export type Login = Infer<typeof Login>

export const DerivationRequest = schema({
  /** The calling session holds each one at the scope. */
  capabilities: [
    [CapabilityField, '[]'],
    ':',
    rule(
      `1 to ${CAPABILITIES.length} capabilities`,
      (list: readonly unknown[]) => list.length > 0 && list.length <= CAPABILITIES.length,
      { minItems: 1, maxItems: CAPABILITIES.length },
    ),
  ],
  scope: ScopeField,
  lifetimeSeconds: integer(1, DERIVED_SECONDS_MAX),
  purpose: PurposeField,
})
export type DerivationRequest = Infer<typeof DerivationRequest>

export const AuthConfig = schema({
  version: '1',
  methods: "('invitation' | 'browser_oidc' | 'helper_token')[]",
  managementOrigin: 'string | null',
})
export type AuthConfig = Infer<typeof AuthConfig>

export const Self = schema({
  version: '1',
  operator: OperatorField,
  session: SessionField,
  grants: [GrantField, '[]'],
  authorizationRevision: U64,
})
export type Self = Infer<typeof Self>

/** Entries of one response (contract/management.md, Limits). */
export const RESOURCES_MAX = 1_024
/** Bytes of one response (contract/management.md, Limits). */
export const RESOURCES_BYTES_MAX = 1024 * 1024

export const ResourceField = schema({
  projectId: idField('prj'),
  environmentId: idField('env'),
  name: 'string',
  slug: 'string',
  managementOrigin: 'string | null',
  capabilities: [CapabilityField, '[]'],
})
export type ResourceField = Infer<typeof ResourceField>

export const Resources = schema({
  version: '1',
  resources: listUpTo(ResourceField, RESOURCES_MAX),
})
export type Resources = Infer<typeof Resources>

export const SessionsQuery = schema({
  'limit?': PageLimit,
  /** The `next` of the previous page. */
  'after?': idField('ops'),
})

export const Sessions = schema({
  version: '1',
  sessions: listUpTo(SessionField, PAGE_MAX),
  /** `after` of the next page; null on the last page. */
  next: [idField('ops'), '|', 'null'],
})
export type Sessions = Infer<typeof Sessions>
