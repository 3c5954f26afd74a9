/** What the application origin needs of the server behind it. */
import type { Engine } from '../../engine/engine.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import type { FilePorts } from '../../product/files/ports.ts'
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

/** The reason why a text is no active Application Key; for the log alone. */
export interface KeyRejection {
  readonly reason: string
  /** The credential that the key belonged to; null for a key that is unknown. */
  readonly credential: CredentialName | null
}

/** Tells callers by their functional tokens. */
export interface TokenVerifier {
  /** Whether the token was verified before, even one that is past its end now. */
  knows(token: string): boolean
  /** Throws FUNCTIONAL_TOKEN_INVALID or UNAVAILABLE. */
  verify(token: string): Promise<Principal>
}

/** A request as it came, and who sent it. */
export interface Incoming extends Sender {
  readonly request: Request
  readonly requestId: RequestId
  readonly binding: Partial<ApplicationBinding>
  /** Once its key was found good. */
  caller: ApplicationCaller | null
  /** Once there is an invocation: its failure is told with them. */
  invocationId: InvocationId | null
  /** Once its Function was found. */
  releaseId: ReleaseId | null
  function: string | null
  /** The credential of a key that is not active any more. */
  rejectedKey?: CredentialName | null
  /** The verification of its functional token, once that began: it is verified once. */
  presented?: Promise<Principal>
}

/** Tells callers apart for a weighted policy. */
export interface AffinitySource {
  /** The same text for one who is to stay where it is. */
  affinity(): string | Promise<string>
}

/** What the listener tells about a request; no look-up is for free. */
export interface ApplicationBinding extends PeerBinding {
  /** Lets the answer take longer than a connection may be idle; after the body was read. */
  takeTime(): void
  /** Ends that: what was taken would hold for all that comes on the connection afterwards. */
  returnTime(): void
}

export interface Gateway {
  readonly system: System
  readonly log: Logger
  readonly engine: Engine
  readonly envelopes: QueryEnvelopes
  readonly tokens: TokenVerifier
  /** null limits nothing. */
  readonly limits: ApplicationLimits | null
  readonly transfers: Transfers
  /** Rules of stored files. */
  readonly files: FilePorts
  readonly counts: RequestCounts
  readonly keyUsage: KeyUsage
  readonly rejections: RejectionLog
  /** Exact browser origins; any other Origin header is refused. */
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
  /** Whether anything is: not before the first promotion or policy, nor while archived. */
  serving(): boolean
}
