/** Log records as rows, and the messages between the main thread and the writing thread. */

export interface LogRow {
  readonly sequence: number
  /** Microseconds. */
  readonly at: number
  readonly stream: 'platform' | 'function' | 'audit'
  /** 0 debug, 1 info, 2 warn, 3 error. */
  readonly level: number
  readonly release: string | null
  readonly function: string | null
  readonly request: string | null
  /** JSON of the record without its cursor and its Environment. */
  readonly record: string
}

/** The newest record up to which every record is in a segment that was found whole. */
export interface Frontier {
  readonly sequence: number
  readonly at: number
  /** When the last of these segments was verified. */
  readonly verifiedAt: number
}

export interface ArchiveState {
  readonly frontier: Frontier | null
  readonly segments: number
  /** Bytes of all segments. */
  readonly bytes: number
  /** Name of the first segment that is missing or damaged. */
  readonly damaged: string | null
}

export interface PruneRequest {
  /** Only records before this time are removed. */
  readonly before: number
  readonly maximum: number
  /** If false, records are only counted. */
  readonly apply: boolean
  readonly now: number
}

export interface PruneResult {
  readonly eligible: number
  readonly pruned: number
  readonly archive: ArchiveState
}

export interface OpenLog {
  readonly path: string
  /** Directory of the segments. */
  readonly directory: string
  readonly environmentId: string
  readonly now: number
}

export interface ArchiveRequest {
  readonly now: number
  /** Bytes of records of one segment. */
  readonly bytesMax: number
  /** Microseconds after which the oldest record is archived even if the segment is short. */
  readonly ageMax: number
}

export type LogJob =
  | ({ readonly kind: 'open' } & OpenLog)
  | { readonly kind: 'append'; readonly rows: readonly LogRow[] }
  | ({ readonly kind: 'archive' } & ArchiveRequest)
  | ({ readonly kind: 'prune' } & PruneRequest)
  | { readonly kind: 'state' }
  | { readonly kind: 'close' }

export interface LogResults {
  /** The sequence of the next record. */
  readonly open: number
  readonly append: null
  readonly archive: ArchiveState
  readonly prune: PruneResult
  readonly state: ArchiveState
  readonly close: null
}

export type LogReply =
  | { readonly result: LogResults[keyof LogResults] }
  /** A code of SQLite or of the system, or a rule; never the text of a record. */
  | { readonly failure: string }
