/** The order that the server hands to the process that rehearses a restore: a line of JSON. */
import type { HistoryAddress } from '../../backups/format/chain.ts'
import type { RehearsedBackup } from '../../backups/rehearsal/rehearsals.ts'
import type { S3Address } from '../../storage/blobs/s3-objects.ts'

export const REHEARSAL_ARGUMENT = '__backup-rehearsal'

export interface RehearsalRequest {
  readonly target:
    | { readonly kind: 'directory'; readonly path: string }
    | { readonly kind: 's3'; readonly address: S3Address; readonly prefix: string }
  readonly address: HistoryAddress
  /** Identities of age. They are passed by a pipe, never by arguments or the environment. */
  readonly identities: readonly string[]
  /** A directory that does not exist, for what is restored. */
  readonly directory: string
  /** Bytes that the rehearsal leaves free on the disk of the directory. */
  readonly freeFloorBytes: number
}

/** The only line that the process prints. */
export type RehearsalReply =
  | { readonly rehearsed: RehearsedBackup }
  | { readonly code: string; readonly detail: string | null }
