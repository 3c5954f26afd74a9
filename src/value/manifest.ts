/**
 * Declarations of a Workspace package. The manifest is RFC 8785 canonical JSON. The server trusts
 * it only after it compared it with the definitions that the code registers inside the sandbox.
 * wire/files/manifest.ts reads it.
 */
import {
  FILE_DOCUMENTS,
  FILES_TABLE,
  MULTIPART_DOCUMENTS,
  PART_DOCUMENTS,
  UPLOAD_DOCUMENTS,
} from './files/files.ts'
import type { HttpRouteManifest } from './http/routes.ts'
import type { AuthMode } from './identities.ts'
import type { ProjectId } from './ids.ts'
import { MIGRATION_DOCUMENTS } from './migrations/migrations.ts'
import type { Overlap } from './scheduling/crons.ts'
import { CRON_DOCUMENTS, SCHEDULED_DOCUMENTS } from './scheduling/scheduled-work.ts'
import type { Json } from './strict-json.ts'
import type { FieldsJson, ValidatorJson } from './validators.ts'

export const FUNCTION_KINDS = ['query', 'mutation', 'action'] as const
export type FunctionKind = (typeof FUNCTION_KINDS)[number]
export type ClientKind = 'public' | 'confidential'
/** Meaning of a declared error to the caller of the Function. */
export const DECLARED_ERROR_KINDS = ['invalid', 'forbidden', 'not_found', 'conflict'] as const
export type DeclaredErrorKind = (typeof DECLARED_ERROR_KINDS)[number]

/** Resources that an Action may use; it has no access to others. The lists are sorted. */
export interface FunctionUses {
  /** Hosts as in a URL: a DNS name, with `:port` unless it is the default of the scheme. */
  readonly network: readonly string[]
  /** Names of secrets of the Environment's configuration. */
  readonly secrets: readonly string[]
  /** Access to stored files; absent for none. `write` includes `read`. */
  readonly storage?: StorageAccess
}

export type StorageAccess = 'read' | 'write'

export interface FunctionManifest {
  /** `<path>.<export>`, such as `messages.list` or `admin/users.ban`. */
  readonly name: string
  readonly kind: FunctionKind
  readonly visibility: 'public' | 'internal'
  /** Kinds of Application Client that may call it; sorted. */
  readonly clients: readonly ClientKind[]
  /** Identity that a caller must present. */
  readonly auth: AuthMode
  readonly arguments: FieldsJson
  readonly returns: ValidatorJson
  /** Codes without the APP_ prefix. */
  readonly errors: { readonly [code: string]: DeclaredErrorKind }
  /** Present for an Action, absent for other kinds. */
  readonly uses?: FunctionUses
  /** False if results of the Function are never compressed; otherwise absent. */
  readonly compress?: false
  /** Attempts of an Action that may run more than once where it is scheduled; otherwise absent. */
  readonly retry?: RetryManifest
}

/** Returns the declaration of code of the server, and of code of an author that declares none. */
export function undeclaredFunction(name: string, kind: 'query' | 'mutation'): FunctionManifest {
  return {
    name,
    kind,
    visibility: 'internal',
    clients: [],
    auth: 'none',
    arguments: {},
    returns: { type: 'any' },
    errors: {},
  }
}

/** Attempts of a scheduled Action, which may then have its effects more than once. */
export interface RetryManifest {
  /** The first attempt included. */
  readonly maximumAttempts: number
  /** Each delay is the one before times the factor, up to the maximum. */
  readonly backoff: {
    readonly initialMillis: number
    readonly factor: number
    readonly maximumMillis: number
  }
}

export interface IndexManifest {
  readonly name: string
  readonly fields: readonly string[]
  readonly unique: boolean
}

export interface TableManifest {
  readonly name: string
  readonly fields: FieldsJson
  /** Sorted by name. */
  readonly indexes: readonly IndexManifest[]
}

/** Calls of one Function, at the times of an expression or at an interval: one of both is null. */
export interface CronManifest {
  /** `[A-Za-z][A-Za-z0-9_-]{0,63}`. */
  readonly name: string
  /** Five fields (scheduling/cron-expressions.ts). */
  readonly schedule: string | null
  /** Zone of the IANA database in which the expression is read; null without one. */
  readonly timeZone: string | null
  readonly everyMillis: number | null
  /** A Mutation or an Action. */
  readonly function: string
  /** Stored JSON of an object. */
  readonly arguments: Json
  readonly overlap: Overlap
}

/** Code that changes the stored documents of one table, in the order of an index. */
export interface MigrationManifest {
  /** `[A-Za-z][A-Za-z0-9_]{0,63}`. */
  readonly name: string
  readonly table: string
  /** Null for the order of creation. */
  readonly index: string | null
  /** Most documents of one transaction. */
  readonly batch: number
  /** Equal for the same migration of another Release (migrations/migrations.ts). */
  readonly digest: string
}

/** The part of a manifest that a runner derives from the code. */
export interface WorkspaceDescription {
  /** Sorted by name. */
  readonly functions: readonly FunctionManifest[]
  /** Sorted by name. */
  readonly tables: readonly TableManifest[]
  /** Sorted by name; absent where there are none. */
  readonly crons?: readonly CronManifest[]
  /** Sorted by name; absent where there are none. */
  readonly migrations?: readonly MigrationManifest[]
  /**
   * Names of migrations, also of earlier Releases, that must be complete before the Release is
   * bound. Sorted; absent where there are none.
   */
  readonly requires?: readonly string[]
  /** Routes for requests of other services, sorted by name; absent where there are none. */
  readonly http?: readonly HttpRouteManifest[]
}

export interface WorkspaceManifest extends WorkspaceDescription {
  readonly version: 1
  readonly projectId: ProjectId
  /** Workspace name, `[a-z][a-z0-9-]{0,62}`. */
  readonly workspace: string
  readonly artifact: {
    /** `sha256:` + 64 lowercase hex characters. */
    readonly digest: string
    readonly bytes: number
  }
}

export const WORKSPACE_NAME = /^[a-z][a-z0-9-]{0,62}$/
export const FUNCTION_NAME = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+)*\.[A-Za-z_$][A-Za-z0-9_$]*$/
export const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const INDEX_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/
export const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/
const HOST = /^([a-z0-9.-]+)(?::([1-9][0-9]{0,4}))?$/
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** @limit Workspaces and Releases: hosts, and secrets, that one Action names in `uses` */
export const USES_MAX = 64
/** Tables of the server: of stored files, scheduled work, Crons and migrations. */
export const RESERVED_TABLES: readonly string[] = [
  FILES_TABLE,
  FILE_DOCUMENTS,
  UPLOAD_DOCUMENTS,
  MULTIPART_DOCUMENTS,
  PART_DOCUMENTS,
  SCHEDULED_DOCUMENTS,
  CRON_DOCUMENTS,
  MIGRATION_DOCUMENTS,
]
/** @limit Workspaces and Releases: Functions of a Release */
export const FUNCTIONS_MAX = 4_096
/** @limit Workspaces and Releases: tables of a schema */
export const TABLES_MAX = 1_000
/** @limit Workspaces and Releases: indexes of a table */
export const INDEXES_MAX = 64
/** @limit Workspaces and Releases: fields of an index */
export const INDEX_FIELDS_MAX = 16

/** Returns whether the text is a host for `uses.network`: a lower-case name, not an address. */
export function isHost(text: string): boolean {
  const [, name, port = '1'] = HOST.exec(text) ?? []
  if (name === undefined || name.length > 253 || Number(port) > 65_535) return false
  const labels = name.split('.')
  // The last label of an IP address begins with a digit in every notation.
  return labels.every((label) => HOST_LABEL.test(label)) && !/^[0-9]/.test(labels.at(-1)!)
}
