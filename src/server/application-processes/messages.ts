/** The messages between the main process and an application process, in both directions. */
import type { StoreSchema } from '../../documents/store.ts'
import type { CommitWrites } from '../../engine/commits/read-set.ts'
import type { InvocationContext } from '../../engine/invocations/invocation.ts'
import type { ComponentHealth } from '../../engine/usage/health.ts'
import type { KeyUses } from '../../product/application-clients/key-verification.ts'
import type { ServedTargets } from '../../product/serving/serving.ts'
import type { Listener } from '../../settings/addresses.ts'
import type { MemorySettings } from '../../settings/memory.ts'
import type { RealtimeSettings } from '../../settings/realtime.ts'
import type { CertificatePair, CertificatePaths } from '../../settings/tls.ts'
import type { TraceSettings } from '../../settings/traces.ts'
import type { S3Address } from '../../storage/blobs/s3-objects.ts'
import type { KeyPublisher, PublishedKeySet } from '../../storage/control/published-keys.ts'
import type { MemoryPlan } from '../../system/memory/memory-plan.ts'
import type { ProcessMetrics } from '../../telemetry/metrics/metrics.ts'
import type { Principal } from '../../value/identities.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { JwtProvider } from '../../value/jwt-providers.ts'

/** Settings of traces, with the texts of their secret headers. */
export interface SentTraces extends Omit<TraceSettings, 'headers'> {
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

/** The certificate that the main process serves, with its private key as text. */
export interface SentCertificate extends Omit<CertificatePair, 'key'> {
  /** The files that later ones are read from. They may be damaged by now. */
  readonly paths: CertificatePaths
  /** PEM. */
  readonly key: string
}

/** The settings and the state that an application process starts with. It has secrets as texts. */
export interface StartMessage {
  readonly rootPath: string
  /** The address to listen on, which all application processes share. */
  readonly listen: Listener
  /** True if a trusted proxy terminates TLS before the address. */
  readonly tlsTerminated: boolean
  /** The certificate if this process ends TLS; otherwise null. */
  readonly certificate: SentCertificate | null
  readonly countersPath: string
  /** The memory in which all processes keep the rate limits of the application origin. */
  readonly limitsPath: string
  /** The memory in which all processes keep the pace of transfers. */
  readonly transfersPath: string
  /** The memory in which all processes count connections and downloads. */
  readonly countsPath: string
  /** Hides from callers which keys share a count. */
  readonly countsSalt: string
  /** Number of application processes. */
  readonly processes: number
  /** The number of this process, from 1. One that is replaced has the same number. */
  readonly number: number
  /** The Unix socket on which the main process answers what it alone can. */
  readonly originPath: string
  readonly databaseUrl: string | null
  readonly jwtProviders: readonly JwtProvider[]
  readonly allowedOrigins: readonly string[]
  readonly s3Host: string | null
  /** The S3-compatible store of the bytes of files; null for the disk. */
  readonly s3: S3Address | null
  readonly sandbox: 'preferred' | 'required'
  readonly memory: Pick<MemorySettings, 'requestMib' | 'responseMib'>
  readonly plan: MemoryPlan
  readonly realtime: RealtimeSettings
  readonly traces: SentTraces | null
  /** The newest sequence and the schema that the following messages continue. */
  readonly latestSequence: number
  readonly schema: StoreSchema
}

/** Documents and index keys of a commit, in the order of durable sequences. */
export type FollowedCommit = readonly [
  sequence: number,
  writes: Pick<CommitWrites, 'documents' | 'keys'>,
]

export interface MainSide {
  readonly message:
    | { readonly kind: 'start'; readonly start: StartMessage }
    | { readonly kind: 'commit'; readonly commit: FollowedCommit }
    | { readonly kind: 'schema'; readonly schema: StoreSchema }
    | { readonly kind: 'control'; readonly changes: number }
    /** The main process serves this since its last change. */
    | { readonly kind: 'served'; readonly changes: number; readonly served: ServedTargets }
    | { readonly kind: 'drain' }
  readonly request:
    | { readonly kind: 'warm'; readonly releaseId: ReleaseId }
    /** Asks for a `ProcessStatus`; null from a process that is not open yet. */
    | { readonly kind: 'status' }
    /** Asks for the `FunctionCounts` of a Release; none from a process that is not open yet. */
    | { readonly kind: 'functions'; readonly releaseId: string }
}

/** The report of an application process. */
export interface ProcessStatus {
  readonly realtime: ComponentHealth
  readonly metrics: ProcessMetrics
}

/** A call that the main process executes. */
export interface SentCall {
  readonly releaseId: ReleaseId
  readonly function: string
  /** Stored JSON. */
  readonly arguments: string
  readonly principal: Principal | null
  readonly context: InvocationContext
  /** Headers that continue the trace of the call; empty where nothing is traced. */
  readonly traceHeaders: readonly (readonly [name: string, value: string])[]
}

/** The operation that a Mutation is. */
export interface SentOperation {
  readonly operationId: string
  readonly target: string
  readonly caller: string
}

export interface ApplicationSide {
  readonly message: /** It listens. */
    | { readonly kind: 'ready' }
    | { readonly kind: 'keyUses'; readonly uses: KeyUses }
    /** Keys that a JWT provider publishes. */
    | {
        readonly kind: 'keySet'
        readonly publisher: KeyPublisher
        readonly keySet: PublishedKeySet
      }
    /** JSON of records of the Environment's log. */
    | { readonly kind: 'log'; readonly records: readonly string[] }
    | { readonly kind: 'status'; readonly status: ProcessStatus }
  readonly request:
    | { readonly kind: 'mutation'; readonly call: SentCall; readonly operation: SentOperation }
    | { readonly kind: 'action'; readonly call: SentCall }
    | {
        readonly kind: 'replay'
        readonly operationId: string
        readonly target: string
        readonly function: string
        readonly arguments: string
        readonly callers: readonly string[]
      }
    | { readonly kind: 'prepare'; readonly releaseId: ReleaseId }
}
