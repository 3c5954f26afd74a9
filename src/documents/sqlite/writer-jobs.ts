/** Messages between the main thread and the writer thread, sent as structured clones. */
import type { JobReply } from '../../system/job-threads.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import type { IndexDefinition, IndexRow, PruneResult } from '../store.ts'
import type { RetentionRequest } from '../store-state.ts'
import type { BatchMessage } from './batch-messages.ts'

export type WriterJob =
  | {
      readonly kind: 'open'
      readonly path: string
      readonly isTemporary: boolean
      readonly cacheMib: number
      readonly isShared?: boolean
    }
  | ({ readonly kind: 'commit' } & BatchMessage)
  | { readonly kind: 'ensure'; readonly definitions: readonly IndexDefinition[] }
  | { readonly kind: 'build'; readonly index: number }
  | { readonly kind: 'drop'; readonly index: number }
  | { readonly kind: 'shapes'; readonly shapes: ReadonlyMap<string, FieldShape> }
  | ({ readonly kind: 'prune' } & RetentionRequest)
  | { readonly kind: 'trim' }
  | { readonly kind: 'close' }

export interface WriterResults {
  readonly open: null
  readonly commit: null
  /** A row for each definition. */
  readonly ensure: readonly IndexRow[]
  /** The index after one chunk, ready after the last one; null if it was dropped. */
  readonly build: IndexRow | null
  readonly drop: null
  readonly trim: null
  /** The field names of each table that texts have as codes from now on. */
  readonly shapes: ReadonlyMap<string, readonly string[]>
  readonly prune: PruneResult
  readonly close: null
}

/**
 * Outcome of a failed job. `none`: nothing is stored and the writer can continue. `limit`: nothing
 * is stored, since a key is too long. `uncertain`: it is unknown whether the COMMIT is durable.
 * `corrupt`: nothing is stored, and an invariant is broken. After the last two the writer must not
 * be used again.
 */
export type FailureOutcome = 'none' | 'limit' | 'uncertain' | 'corrupt'

export interface WriterFailure {
  readonly outcome: FailureOutcome
  /** Text for the log: an SQLite code or a rule, never a stored value. */
  readonly detail: string
}

export type WriterReply = JobReply<WriterResults[keyof WriterResults], WriterFailure>
