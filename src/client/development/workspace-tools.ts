/** The tools that only the executable has, which `dev` makes: builds and `svc dev`. */
import type { SignatureManifest } from '../../value/http/routes.ts'
import type { ProjectId } from '../../value/ids.ts'
import type { LogRecord } from '../../wire/logs.ts'
import type { DevelopmentEvent } from './events.ts'

export interface BuiltWorkspace {
  /** The package frame; equal sources give equal bytes. */
  readonly frame: Uint8Array
  /** Problems that do not fail the build, each with its location and its fix. */
  readonly warnings: readonly string[]
}

export interface GeneratedCode {
  /** Absolute paths of the files that were written, since they differed. */
  readonly changed: readonly string[]
  readonly warnings: readonly string[]
}

/** The backup that `svc dev --from` fills a root with. */
export interface CopyRequest {
  /** An absolute path of a directory or a tar file, or `s3://bucket/prefix`. */
  readonly from: string
  /** Absolute paths of files with identities that open the backup. */
  readonly identities: readonly string[]
  /** Null for the only one that the backup has. */
  readonly environmentId: string | null
  /** Null for the newest one. */
  readonly historyId: string | null
  /** Content of the redaction file; null for none. */
  readonly redaction: Uint8Array | null
}

/** The root and the Workspace that `svc dev` serves, and how. */
export interface DevelopmentRequest {
  /** Absolute path of the Product root. */
  readonly rootPath: string
  /** Absolute. */
  readonly workspaceDirectory: string
  /** Null for the usual port, or any other where that one is in use. */
  readonly port: number | null
  /** True if devices of the local network may call Functions too. */
  readonly opensToNetwork: boolean
  /** Content of the seed file; null for none. */
  readonly seed: Uint8Array | null
  /** True if all documents, files, Releases and keys are removed first. */
  readonly reset: boolean
  /** Null for none. */
  readonly copy: CopyRequest | null
  /** The variables by which a backup in an S3-compatible store is read. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly report: (event: DevelopmentEvent) => void
  /** Stops the command. */
  readonly signal: AbortSignal
}

/** The shared Environment that `svc dev --attach` synchronizes a Workspace into. */
export interface SharedEnvironment {
  /**
   * Returns the Project that packages of the Workspace name. The first call for a Workspace reads
   * its HEAD.
   */
  projectOf(workspace: string): Promise<ProjectId>
  /** Makes a package the HEAD of its Workspace. */
  synchronize(build: {
    readonly workspace: string
    readonly frame: Uint8Array
    /** Monotonic milliseconds of the change. */
    readonly startedAt: number
    readonly warnings: readonly string[]
  }): Promise<void>
  /** Returns whether only a change of the source can end a failure of these methods. */
  isOfSource(error: unknown): boolean
}

/** The Workspace that `svc dev --attach` follows. */
export interface AttachRequest {
  /** Absolute. */
  readonly workspaceDirectory: string
  readonly shared: SharedEnvironment
  readonly report: (event: DevelopmentEvent) => void
  /** Stops the command. */
  readonly signal: AbortSignal
}

/** The Workspace that `svc build --watch` follows. */
export interface WatchRequest {
  /** Absolute. */
  readonly workspaceDirectory: string
  readonly onChange: () => Promise<void>
  readonly onNotice: (notice: string) => Promise<void>
  /** Stops the command. */
  readonly signal: AbortSignal
}

/** A request to a hook of the running `svc dev`, without its signature. */
export interface UnsignedSample {
  /** The Workspace that is served, absolute. */
  readonly workspaceDirectory: string
  readonly verify: Extract<SignatureManifest, { readonly secret: string }>
  readonly url: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly nowMillis: number
  /** The ID of the event, for services that send one in a header. */
  readonly id: string
}

/** The URL that the service would call, and the headers that it adds. */
export interface SampleSignature {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** The Workspaces that `svc init` starts with, the usual one first. */
export const TEMPLATE_NAMES = ['chat', 'api', 'empty'] as const

export type TemplateName = (typeof TEMPLATE_NAMES)[number]

/** The backup that `svc backup verify` reads. */
export interface BackupCheckRequest {
  /** A directory, a tar file, or `s3://bucket/prefix`. */
  readonly from: string
  /** Files with identities that open the backup. */
  readonly identities: readonly string[]
  readonly environmentId: string | null
  readonly historyId: string | null
  /** True if it is restored into a temporary directory, which is removed afterwards. */
  readonly restores: boolean
  /** An empty database for the identity of the installation; null restores none. */
  readonly databaseUrl: string | null
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly onProgress: (step: string, done: number) => void
}

export interface CheckedBackup {
  readonly environmentId: string
  readonly historyId: string
  /** The newest state that the backup has. */
  readonly sequence: number
  readonly atMicros: bigint
  readonly segments: number
  readonly files: number
  readonly fileBytes: number
  /** Files, and parts of files, whose bytes the backup does not have. */
  readonly missingFiles: number
  /** The documents of the restored store and their digest; null without a restore. */
  readonly restored: { readonly documents: number; readonly merkle: string } | null
}

export type ForeignValue = null | bigint | number | string | Uint8Array
export type ForeignRow = Readonly<Record<string, ForeignValue>>

export interface ForeignTable {
  readonly name: string
  readonly columns: readonly string[]
}

/** A SQLite file that another program wrote. */
export interface ForeignDatabase {
  /** The ordinary tables, without views and virtual tables. */
  readonly tables: readonly ForeignTable[]
  /** Yields the rows in the order of their creation. */
  rows(table: ForeignTable): Iterable<ForeignRow>
  close(): void
}

/** Tools that only the executable has, since they need more than Node. */
export interface WorkspaceTools {
  /** Opens a SQLite file, beside which SQLite may write. Throws what SQLite throws. */
  openForeignDatabase(path: string): Promise<ForeignDatabase>
  /** Reads and checks a whole backup. Throws BACKUP_CORRUPT and what a restore throws. */
  checkBackup(request: BackupCheckRequest): Promise<CheckedBackup>
  /** Builds a Workspace. */
  build(input: {
    /** Absolute. */
    readonly workspaceDirectory: string
    readonly projectId: ProjectId
    /** True if type errors fail the build. */
    readonly checksTypes: boolean
  }): Promise<BuiltWorkspace>
  /**
   * Builds a Workspace and writes `_generated/` into it, or the references to its Functions and
   * the client package into `clientDirectory`.
   */
  generate(input: {
    /** Absolute. */
    readonly workspaceDirectory: string
    /** Absolute. */
    readonly clientDirectory: string | null
  }): Promise<GeneratedCode>
  /** Writes a first Workspace without overwriting files. Returns the paths that it created. */
  writeWorkspace(input: {
    /** Absolute. */
    readonly workspaceDirectory: string
    readonly name: string
    readonly template: TemplateName
    /** Absolute path of the root, which the file for editors names. */
    readonly rootDirectory: string
  }): Promise<readonly string[]>
  /** Runs `onChange` now and after each change of the files, until `signal` fires. */
  watch(request: WatchRequest): Promise<void>
  /** Signs a sample as the service does, with the secret in the file of the Workspace. */
  signSample(sample: UnsignedSample): Promise<SampleSignature>
  /** Returns the failure that a record of the log describes, with its lines of source. */
  failureOf(
    record: LogRecord,
    workspaceDirectory: string,
  ): Promise<Extract<DevelopmentEvent, { readonly event: 'failed' }> | null>
  /** Serves a Workspace on this machine until `signal` fires. */
  develop(request: DevelopmentRequest): Promise<void>
  /** Synchronizes a Workspace into a shared Environment until `signal` fires. */
  attach(request: AttachRequest): Promise<void>
}
