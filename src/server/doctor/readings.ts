/**
 * The readings that the checks of the doctor evaluate: of the machine, the databases and the
 * Product root. They are plain data, so that a test can give any of them, and hold no secret.
 */

/**
 * A reading that could be made; one that was not, with the reason and a command that makes it; or
 * one that failed, with the reason and a command that repairs it.
 */
export type Reading<T> =
  | { readonly value: T }
  | { readonly skipped: string; readonly command?: string | undefined }
  | { readonly failed: string; readonly command?: string | undefined }

export interface SettingsReading {
  readonly unread: readonly string[]
  readonly deprecated: readonly string[]
  readonly exposed: readonly string[]
  /** The reason why the settings do not fit the stores that the root records; null if they do. */
  readonly storeDefect: string | null
  /** The reason why a key set of a JWT provider cannot be used; null if all can. */
  readonly jwtDefect: string | null
  readonly publicUrl: string | null
  readonly tlsTerminated: boolean
  /** True if the management listener ends TLS itself. */
  readonly endsTls: boolean
  /** Allowed browser origins of other machines without TLS. */
  readonly plainOrigins: readonly string[]
}

export interface BackupsReading {
  /** Number of the recipients in the settings. */
  readonly recipients: number
  /** Null without a target in the settings. */
  readonly target: BackupTargetReading | null
  readonly baseIntervalMillis: number
  /** True if this server rehearses restores. */
  readonly rehearses: boolean
  /** The last rehearsal; null before the first one. */
  readonly rehearsal: { readonly ageMillis: number; readonly failureCode: string | null } | null
}

export interface BackupTargetReading {
  /** The path or the bucket. */
  readonly location: string
  /** The reason why it cannot be read or written; null if it can. */
  readonly failure: string | null
  /** False if only a write could tell. */
  readonly isWritable: boolean
  /** The newest state that can be restored; null if there is no whole backup. */
  readonly newest: { readonly sequence: number; readonly ageMillis: number } | null
}

export interface ClockReading {
  /** Milliseconds that the wall clock gained on the monotonic clock during the run. */
  readonly driftMillis: number
  readonly elapsedMillis: number
}

export interface RecordTimesReading {
  /** Milliseconds by which the newest stored record is ahead of the wall clock; may be negative. */
  readonly aheadMillis: number
}

export interface DiskReading {
  readonly path: string
  readonly freeBytes: number
  readonly totalBytes: number
  /** Bytes that uploads leave free; 0 for a disk without files. */
  readonly floorBytes: number
  readonly freeInodes: number
  /** 0 where the file system does not count them. */
  readonly totalInodes: number
  readonly isWritable: boolean
  /** Name of the kind of file system, such as `ext4`. */
  readonly kind: string
  /** Mount options that weaken durability. */
  readonly weakOptions: readonly string[]
}

export interface SyncReading {
  readonly path: string
  /** Microseconds of the median, and of the slowest, of some writes of a page with fsync. */
  readonly medianMicros: number
  readonly slowestMicros: number
  /** Libraries loaded into this process that are known to ignore fsync. */
  readonly preloaded: readonly string[]
}

export interface ProcessReading {
  /** Soft limits; null for none. */
  readonly descriptors: number | null
  readonly processes: number | null
  /** Descriptors and processes that the settings let the server use. */
  readonly descriptorsWanted: number
  readonly processesWanted: number
  readonly runsAsRoot: boolean
  /** The path of the executable if other users can replace or write it; null if they cannot. */
  readonly exposedExecutable: string | null
}

export interface MemoryReading {
  readonly targetBytes: number
  readonly machineBytes: number
  /** The limit of the control group; null for none. */
  readonly groupBytes: number | null
  /** Processes of the control group that the kernel has killed for want of memory. */
  readonly kills: number
}

export interface ProcessorsReading {
  readonly available: number
  /** Processors that the control group may use at one time; null for no quota. */
  readonly quota: number | null
  readonly applicationProcesses: number
}

export interface SandboxReading {
  readonly level: 'full' | 'partial' | 'none'
  readonly isRequired: boolean
  /** The layers that are missing; empty with full containment. */
  readonly detail: string
}

export interface SchemaReading {
  /** 0 for an empty database, null if it is unknown. */
  readonly version: number | null
  readonly known: number
  /** The reason why this program cannot use the schema; null if it can. */
  readonly defect: string | null
}

export interface PostgresReading {
  readonly host: string
  readonly port: number
  readonly fsync: string
  readonly fullPageWrites: string
  readonly synchronousCommit: string
  readonly encoding: string
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  /** Connections of the server for other roles than superusers, and the lowest other limit. */
  readonly connectionsMax: number
  readonly connectionsUsed: number
  /** Those that servers of this product have open, and that this one opens at most. */
  readonly connectionsOwn: number
  readonly connectionsWanted: number
  readonly collationRecorded: string | null
  readonly collationActual: string | null
  /** Transactions since the oldest row that is not frozen. */
  readonly transactionAge: number
  readonly oldestTransactionSeconds: number
  readonly preparedTransactions: number
  readonly idleSlots: number
  readonly isEncrypted: boolean
  /** True if the database is on this machine. */
  readonly isLocal: boolean
  /** Milliseconds by which the clock of the database is ahead of that of this machine. */
  readonly clockAheadMillis: number
  /** The reason why sessions are shared; null if each connection has its own. */
  readonly sharedSessions: string | null
  readonly databaseName: string
}

export interface PostgresVersion {
  /** The value of `server_version_num`. */
  readonly number: number
  readonly text: string
}

export interface PeppersReading {
  /** Names of peppers whose check values are others. */
  readonly changed: readonly string[]
  readonly checked: number
}

export interface OwnersReading {
  readonly owners: number
  /** True once the first-owner code was used. */
  readonly isClaimed: boolean
}

export interface ListenerReading {
  readonly address: string
  /** `serving` and `silent` where a server runs; the others are those of an attempt to listen. */
  readonly state: 'free' | 'serving' | 'silent' | 'taken' | 'denied'
}

export interface PublicUrlReading {
  readonly url: string
  /** The status of the probe, and whether this product answered it. */
  readonly status: number
  readonly isThisProduct: boolean
}

export interface ForwardedReading {
  readonly tlsTerminated: boolean
  readonly hasForwardedFor: boolean
  /** Number of addresses in X-Forwarded-For. */
  readonly hops: number
}

export interface CertificateReading {
  readonly setting: string
  readonly origin: string
  /** Milliseconds until the certificate ends; null if the origin cannot be reached. */
  readonly remainingMillis: number | null
  /** The reason why clients reject the certificate; null if they accept it. */
  readonly rejection: string | null
}

export interface CertificateOrdersReading {
  /** The reason why the last order failed, and its age; null if it has not failed. */
  readonly failure: { readonly reason: string; readonly ageMillis: number } | null
  /** Milliseconds until the ordered certificate ends; null without one. */
  readonly remainingMillis: number | null
}

export interface PathDefect {
  readonly path: string
  readonly defect: 'owner' | 'mode' | 'kind'
}

export interface PermissionsReading {
  readonly directory: string
  readonly defects: readonly PathDefect[]
  readonly looked: number
  /** True if there are more entries than were looked at. */
  readonly isPartial: boolean
}

export interface ControlReading {
  /** The first line of the integrity check; null if the file is too large to check here. */
  readonly integrity: string | null
  readonly foreignKeyBreaks: number
  readonly schema: SchemaReading
}

/** Readings of a control database with the schema of this program. */
export interface ControlContentReading {
  readonly isSameEnvironment: boolean
  /** IDs of keys that the control database was written with and that the keyring lacks. */
  readonly missingKeys: readonly string[]
  readonly keys: number
  readonly sealedSecrets: number
  /** Names of configuration secrets that no key opens. */
  readonly unopenedSecrets: readonly string[]
  readonly pendingAudit: number
  /** Milliseconds since the oldest record that awaits delivery was made. */
  readonly oldestPendingAuditMillis: number
  readonly documentsSequence: number
}

export interface ArtifactsReading {
  readonly referenced: number
  readonly missing: readonly string[]
  /** Files older than an hour that no Release has, among those that were listed. */
  readonly orphaned: number
  /** True if there are more files than were listed. */
  readonly isPartial: boolean
}

/** A bounded sample of content-addressed files. */
export interface SampleReading {
  readonly checked: number
  readonly bytes: number
  readonly total: number
  /** True if there are more files than were listed, of which the sample is. */
  readonly isPartial: boolean
  readonly damaged: readonly string[]
}

export interface StoredFilesReading {
  /** Files whose metadata was read, and whether these are all. */
  readonly files: number
  readonly isComplete: boolean
  /** SHA-256 of contents that are missing or of another length. */
  readonly missing: readonly string[]
  /** Contents older than an hour that no file has; null unless all metadata was read. */
  readonly orphaned: number | null
  /** True if there are more contents than were listed. */
  readonly isPartial: boolean
}

export interface TemporaryReading {
  /** Files of unfinished writes, older than an hour. */
  readonly left: readonly string[]
}

export interface DocumentFileReading {
  readonly integrity: string | null
  readonly schema: SchemaReading
  readonly journalMode: string
  readonly returnsPages: boolean
  readonly logBytes: number
}

export interface IndexDefect {
  readonly index: string
  readonly defect: string
}

export interface DocumentsReading {
  readonly latestSequence: number
  /** The sequence that the control database has recorded as durable; null if it is unknown. */
  readonly recordedSequence: number | null
  readonly indexes: number
  /** Indexes that are not built. */
  readonly building: readonly string[]
  readonly sampled: number
  readonly defects: readonly IndexDefect[]
}

export interface LogReading {
  readonly integrity: string | null
  readonly schema: SchemaReading
  /** Records that were dropped, or lost by a kill, and that no record reports yet. */
  readonly lost: number
  readonly segments: number
  /** The newest segments, whose bytes were read. */
  readonly segmentsChecked: number
  readonly bytesChecked: number
  readonly damagedSegments: readonly string[]
  /** Milliseconds since the oldest record that is in no segment was written; null for none. */
  readonly unarchivedMillis: number | null
  readonly segmentMillisMax: number
}

export interface Readings {
  readonly settings: Reading<SettingsReading>
  readonly stateDirectory: Reading<null>
  readonly clock: Reading<ClockReading>
  readonly recordTimes: Reading<RecordTimesReading>
  readonly disks: Reading<readonly DiskReading[]>
  readonly sync: Reading<SyncReading>
  readonly process: Reading<ProcessReading>
  readonly memory: Reading<MemoryReading>
  readonly processors: Reading<ProcessorsReading>
  readonly sandbox: Reading<SandboxReading>
  readonly sqliteVersion: Reading<string>
  readonly identityVersion: Reading<PostgresVersion>
  readonly identity: Reading<PostgresReading>
  readonly identitySchema: Reading<SchemaReading>
  readonly documentVersion: Reading<PostgresVersion>
  readonly documentDatabase: Reading<PostgresReading>
  readonly documentSchema: Reading<SchemaReading>
  /** Fails if the document database is not that of this Environment. */
  readonly documentBinding: Reading<null>
  readonly identityPepper: Reading<PeppersReading>
  readonly subjectPeppers: Reading<PeppersReading>
  readonly owners: Reading<OwnersReading>
  readonly managementListener: Reading<ListenerReading>
  readonly applicationListener: Reading<ListenerReading>
  readonly publicUrl: Reading<PublicUrlReading>
  readonly forwarded: Reading<ForwardedReading>
  readonly certificates: Reading<readonly CertificateReading[]>
  readonly certificateOrders: Reading<CertificateOrdersReading>
  readonly fileStore: Reading<null>
  /** The holder of the lock of the root. */
  readonly lock: Reading<'stopped' | 'running' | 'this server' | 'never started'>
  readonly rootPermissions: Reading<PermissionsReading>
  readonly contentPermissions: Reading<PermissionsReading>
  readonly statePermissions: Reading<PermissionsReading>
  readonly control: Reading<ControlReading>
  readonly controlContent: Reading<ControlContentReading>
  readonly artifacts: Reading<ArtifactsReading>
  readonly artifactSample: Reading<SampleReading>
  readonly fileSample: Reading<SampleReading>
  readonly storedFiles: Reading<StoredFilesReading>
  /** Files that were set aside as damaged. */
  readonly quarantined: Reading<readonly string[]>
  readonly temporary: Reading<TemporaryReading>
  readonly documentFile: Reading<DocumentFileReading>
  readonly documents: Reading<DocumentsReading>
  readonly log: Reading<LogReading>
  readonly backups: Reading<BackupsReading>
}

/** A reading that was not made; `command` makes it. */
export function skip(reason: string, command?: string) {
  return { skipped: reason, command } as const
}
