/** Columns of log records, and the messages between the main thread and the writer thread. */
import type { JobReply } from '../../system/job-threads.ts'
import type { LogLevel } from '../../value/logs/log-levels.ts'

/** The fields of a record that the hot store has as columns, besides the JSON of the record. */
export interface RecordColumns {
  /** Decimal text. */
  readonly atMicros: string
  readonly stream: 'platform' | 'function' | 'audit'
  readonly level: LogLevel
  readonly releaseId?: string
  readonly function?: string
  readonly requestId?: string
}

/** The newest record up to which every record is in a segment that was found whole. */
export interface Frontier {
  readonly sequence: number
  readonly at: number
  /** Time at which the last of these segments was verified. */
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
  /** False if records are only counted. */
  readonly apply: boolean
  readonly now: number
  /** Numbers of segments in the S3-compatible store that were just read and found whole. */
  readonly whole: readonly number[]
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
  /** True if segments are moved to the S3-compatible store. */
  readonly isRemote: boolean
}

/** A segment whose bytes the main thread reads or moves. */
export interface SegmentRef {
  readonly number: number
  /** Name of the file, or of the object. */
  readonly name: string
  readonly size: number
  /** 64 lowercase hex characters. */
  readonly sha256: string
}

/** Segments whose retention is over. */
export interface Expired {
  readonly newlyRemoved: number
  /** The newest removed segment: its digest is where the chain of the others starts. */
  readonly chainStart: SegmentRef | null
  /** The segments whose objects are to be removed from the S3-compatible store. */
  readonly remote: readonly SegmentRef[]
}

export interface ArchiveRequest {
  readonly now: number
  /** Bytes of records of one segment. */
  readonly bytesMax: number
  /** Microseconds after which the oldest record is archived even if the segment is short. */
  readonly ageMax: number
}

/** Records with consecutive sequences. One text crosses to the thread faster than many objects. */
export interface LogBatch {
  readonly first: number
  readonly count: number
  /** The JSON of each record, separated by line feeds. */
  readonly records: string
}

export type LogJob =
  | ({ readonly kind: 'open' } & OpenLog)
  | ({ readonly kind: 'append' } & LogBatch)
  | ({ readonly kind: 'archive' } & ArchiveRequest)
  | ({ readonly kind: 'prune' } & PruneRequest)
  /** Returns the oldest segments that are to be moved to the S3-compatible store. */
  | { readonly kind: 'unmoved' }
  | { readonly kind: 'moved'; readonly number: number; readonly now: number }
  /** Returns the segments in the S3-compatible store that a prune would read. */
  | { readonly kind: 'concerned'; readonly before: number }
  /** Removes segments whose newest record is before this time and has left the hot store. */
  | { readonly kind: 'expire'; readonly before: number }
  /** The object of a removed segment is gone. */
  | { readonly kind: 'expired'; readonly number: number }
  | { readonly kind: 'state' }
  | { readonly kind: 'close' }

export interface LogResults {
  /** The sequence of the next record. */
  readonly open: number
  readonly append: null
  readonly archive: ArchiveState
  readonly prune: PruneResult
  readonly unmoved: readonly SegmentRef[]
  readonly moved: null
  readonly concerned: readonly SegmentRef[]
  readonly expire: Expired
  readonly expired: null
  readonly state: ArchiveState
  readonly close: null
}

/** A failure is a code of SQLite or of the system, or a rule; never the text of a record. */
export type LogReply = JobReply<LogResults[keyof LogResults], string>

/** Numbers of dropped records by reason. */
export interface DroppedRecords {
  /** Records beyond the rate. */
  readonly rate: number
  /** Records beyond the queue, since the disk was slower than the log. */
  readonly queue: number
  /** Records that could not be written. */
  readonly failed: number
}
