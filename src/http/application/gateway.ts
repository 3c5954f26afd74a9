/** What the application origin needs of the server behind it. */
import type { Engine } from '../../engine/engine.ts'
import type { Release } from '../../engine/release.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ClientId, CredentialId } from '../../value/ids.ts'
import type { ClientKind } from '../../value/manifest.ts'
import type { QueryEnvelopes } from './envelopes.ts'

export type ApplicationScope = 'query' | 'mutation' | 'action' | 'realtime' | 'workspace'

/** An Application Key that was verified with this request. */
export interface ApplicationCaller {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  readonly kind: ClientKind | 'development'
  readonly scopes: readonly ApplicationScope[]
}

export interface Gateway {
  readonly system: System
  readonly log: Logger
  readonly engine: Engine
  readonly envelopes: QueryEnvelopes
  /** Exact browser origins; any other Origin header is refused. */
  readonly allowedOrigins: ReadonlySet<string>
  /** Null for a key that is unknown, revoked or deleted. */
  authenticateKey(key: string): ApplicationCaller | null
  /** Throws TARGET_NOT_FOUND, TARGET_DENIED, RELEASE_RETIRED or REQUEST_INVALID. */
  resolveTarget(target: string, caller: ApplicationCaller): Release | Promise<Release>
  /** Whether a Channel was promoted: before the first promotion nothing is served. */
  serving(): boolean
}
