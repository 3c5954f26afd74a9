/** The parts of the server that the application origin uses. */

import type { CallEngine } from '../../engine/engine.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import type { Files } from '../../product/files/files.ts'
import type { FilePorts } from '../../product/files/ports.ts'
import type { HookPorts } from '../../product/http-mounts/hook-ports.ts'
import type { SynchronizationPorts } from '../../product/workspaces/synchronize.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Traces } from '../../telemetry/traces/spans.ts'
import type { Principal } from '../../value/identities.ts'
import type { ApplicationLimits } from '../rate-limits.ts'
import type { RejectionLog } from '../rejection-log.ts'
import type { RequestCounts } from '../request-counts.ts'
import type { Transfers } from '../transfers/transfers.ts'
import type { BrowserOrigins } from './browser-origins.ts'
import type { FunctionDocuments } from './functions/documents.ts'
import type { PlainForms } from './functions/forms.ts'
import type { ApplicationCaller, KeyRejection } from './incoming.ts'
import type { KeyUsage } from './key-usage.ts'
import type { ParsedQueries } from './parsed-queries.ts'

/** A principal whose token expires. */
export interface ExpiringPrincipal extends Principal {
  /** Unix milliseconds from which on the token is rejected. */
  readonly expiresAtMillis: number
}

/** Verifies functional tokens. */
export interface TokenVerifier {
  /** A number that grows whenever the keys of the token issuers may have changed. */
  readonly revision: number
  /** Returns whether the token was verified before, even if it has expired since. */
  knows(token: string): boolean
  /** Throws FUNCTIONAL_TOKEN_INVALID or UNAVAILABLE. */
  verify(token: string): Promise<ExpiringPrincipal>
}

/** Source of the affinity key that a weighted policy uses. */
export interface AffinitySource {
  /** Key of the weighted choice of a Release: callers with one key get one Release. */
  affinity(): string | Promise<string>
}

export interface Gateway {
  readonly system: System
  readonly log: Logger
  readonly engine: CallEngine
  readonly parsedQueries: ParsedQueries
  readonly plainForms: PlainForms
  readonly functionDocuments: FunctionDocuments
  readonly tokens: TokenVerifier
  /** The rate limits; null disables them. */
  readonly limits: ApplicationLimits | null
  readonly transfers: Transfers
  /** Rules of stored files. */
  readonly files: FilePorts & Pick<Files, 'storageKeys'>
  /** Rules of development keys. */
  readonly workspaces: SynchronizationPorts
  /** Rules of requests of other services; null in a process that does not answer them. */
  readonly hooks: HookPorts | null
  readonly counts: RequestCounts
  /** Null or absent where nothing is traced. */
  readonly traces?: Traces | null
  readonly keyUsage: KeyUsage
  readonly rejections: Pick<RejectionLog, 'add'>
  /** Host, without a port, that serves the S3-compatible API at its root; null for none. */
  readonly s3Host: string | null
  /** Exact browser origins; any other Origin header is rejected. */
  readonly allowedOrigins: BrowserOrigins
  /** Returns the caller with this key; null if it is unknown, revoked or deleted. */
  authenticateKey(key: string): ApplicationCaller | null
  /** Returns the reason why `authenticateKey` returned null. */
  explainKey(key: string): KeyRejection
  /** Throws TARGET_NOT_FOUND, TARGET_DENIED, RELEASE_RETIRED, UNAVAILABLE or REQUEST_INVALID. */
  resolveTarget(
    target: string,
    caller: Pick<ApplicationCaller, 'scopes'>,
    source: AffinitySource,
  ): Release | Promise<Release>
  /** A number that grows whenever keys, targets or served Releases may have changed. */
  revision(): number
  /** Reason for the log why nothing is served; null while something is. */
  unservedReason(): string | null
  /** Returns whether any target can be served. Retries Releases that failed to load. */
  canServe(): boolean
}
