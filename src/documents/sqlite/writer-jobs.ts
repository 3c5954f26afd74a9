/** What the main thread asks the writing thread for, and what it answers. Structured clones. */
import type { IndexRow } from '../index-rows.ts'
import type { IndexDefinition } from '../store.ts'
import type { BatchMessage } from './batch-messages.ts'

export type WriterJob =
  | { readonly kind: 'open'; readonly path: string }
  | ({ readonly kind: 'commit' } & BatchMessage)
  | { readonly kind: 'ensure'; readonly definitions: readonly IndexDefinition[] }
  | { readonly kind: 'build'; readonly index: number }
  | { readonly kind: 'drop'; readonly index: number }
  | {
      readonly kind: 'prune'
      readonly horizon: number
      readonly operationsBeforeMicros: bigint
      readonly rowsMax: number
    }
  | { readonly kind: 'close' }

export interface WriterAnswers {
  readonly open: null
  readonly commit: null
  /** One for each definition. */
  readonly ensure: readonly IndexRow[]
  /** The index after one chunk, ready after the last one; or it was dropped meanwhile. */
  readonly build: IndexRow | 'gone'
  readonly drop: null
  readonly prune: { readonly removed: number; readonly more: boolean }
  readonly close: null
}

/**
 * What a failed job left behind: `none` nothing and the writer goes on, `limit` nothing because a
 * key is too long, `uncertain` a COMMIT of unknown outcome, `corrupt` nothing but a broken
 * invariant. After the last two the writer must not be used again.
 */
export type FailureOutcome = 'none' | 'limit' | 'uncertain' | 'corrupt'

export interface WriterFailure {
  readonly outcome: FailureOutcome
  /** For the log: an SQLite code or a rule, never a stored value. */
  readonly detail: string
}

export type WriterReply =
  | { readonly answer: WriterAnswers[keyof WriterAnswers] }
  | { readonly failure: WriterFailure }
