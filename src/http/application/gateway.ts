/** The parts of the server that the application origin uses. */
import type { Engine } from '../../engine/engine.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { Principal } from '../../value/identities.ts'
import type { ClientId, CredentialId, InvocationId, ReleaseId, RequestId } from '../../value/ids.ts'
import type { ClientKind } from '../../value/manifest.ts'
import type { ApplicationLimits, PeerBinding } from '../rate-limits.ts'
import type { RequestCounts } from '../request-counts.ts'
import type { Sender } from '../transfers/senders.ts'
import type { Transfers } from '../transfers/transfers.ts'
import type { QueryEnvelopes } from './call-envelopes.ts'
import type { KeyUsage } from './key-usage.ts'
import type { CredentialName, RejectionLog } from './rejection-log.ts'

/** An Application Key that was verified with this request. */
export interface ApplicationCaller {
  readonly credentialId: CredentialId
  readonly clientId: ClientId
  readonly kind: ClientKind | 'development'
  readonly scopes: readonly ApplicationScope[]
  /** Requests a second; null for the default. */
  readonly rateLimit: number | null
}

/** The reason why a text is not an active Application Key. Only the log shows it. */
export interface KeyRejection {
  readonly reason: string
  /** The credential that the key belonged to; null for a key that is unknown. */
  readonly credential: CredentialName | null
}

/** Verifies functional tokens. */
export interface TokenVerifier {
  /** Returns whether the token was verified before, even if it has expired since. */
  knows(token: string): boolean
  /** Throws FUNCTIONAL_TOKEN_INVALID or UNAVAILABLE. */
  verify(token: string): Promise<Principal>
}

/** State of one request. Its fields are set as the steps of the request complete. */
export interface Incoming extends Sender {
  readonly request: Request
  readonly requestId: RequestId
  readonly binding: Partial<ApplicationBinding>
  /** Set once the key of the request is authenticated. */
  caller: ApplicationCaller | null
  /** Set once the invocation exists; failures report it. */
  invocationId: InvocationId | null
  /** Set once the target is resolved. */
  releaseId: ReleaseId | null
  function: string | null
  /** Credential of a rejected key that was active before. */
  rejectedKey?: CredentialName | null
  /** Verification of the functional token, which runs once for each request. */
  presented?: Promise<Principal>
}

/** Source of the affinity key that a weighted policy uses. */
export interface AffinitySource {
  /** Key of the weighted choice of a Release: callers with one key get one Release. */
  affinity(): string | Promise<string>
}

/** Facts that the listener knows about a request; each one costs a look-up. */
export interface ApplicationBinding extends PeerBinding {
  /** Suspends the idle timeout of the connection. Call it after the body was read. */
  takeTime(): void
  /** Restores the idle timeout, which otherwise stays suspended for later requests. */
  returnTime(): void
}

export interface Gateway {
  readonly system: System
  readonly log: Logger
  readonly engine: Engine
  readonly envelopes: QueryEnvelopes
  readonly tokens: TokenVerifier
  /** Null disables rate limits. */
  readonly limits: ApplicationLimits | null
  readonly transfers: Transfers
  readonly counts: RequestCounts
  readonly keyUsage: KeyUsage
  readonly rejections: RejectionLog
  /** Exact browser origins; any other Origin header is rejected. */
  readonly allowedOrigins: ReadonlySet<string>
  /** Null for a key that is unknown, revoked or deleted. */
  authenticateKey(key: string): ApplicationCaller | null
  /** Returns the reason why `authenticateKey` returned null. */
  explainKey(key: string): KeyRejection
  /** Throws TARGET_NOT_FOUND, TARGET_DENIED, RELEASE_RETIRED, UNAVAILABLE or REQUEST_INVALID. */
  resolveTarget(
    target: string,
    caller: ApplicationCaller,
    source: AffinitySource,
  ): Release | Promise<Release>
  /** Returns false before the first promotion or policy, and while the Environment is archived. */
  serving(): boolean
}
