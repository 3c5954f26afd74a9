/** What becomes of one call in a runner. */
import type { StoredDocument } from '../../documents/store.ts'
import type {
  CallUsage,
  ErrorReport,
  FromRunner,
  InvokeRequest,
  Page,
} from '../../runner/messages.ts'
import type { Operation, StoredJson } from '../../runner/operations.ts'

/** Whoever waits for an outcome; looked at some 40 times a second, so a look may cost a little. */
export interface CancellationToken {
  /** Whether nobody waits any more. */
  readonly aborted: boolean
}

export interface RunnerCall extends InvokeRequest {
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly signal?: CancellationToken | undefined
  /**
   * Documents that a speculative call receives with its arguments. Absent for a synchronous call,
   * as is every call of a Function by a Function.
   */
  readonly prefetched?: readonly StoredDocument[] | undefined
}

/** Runs a call as part of the one that asked for it: in its runner, on its CPU time. */
export type InvokePart = (call: RunnerCall, host: RunnerHost) => Promise<RunnerOutcome>

/** For operations that call no other Function. */
export const noParts: InvokePart = () => Promise.resolve({ kind: 'lost' })

/** Stored JSON, or documents that the runner may hold from an earlier call. */
export type OperationAnswer = string | FoundDocuments

export interface FoundDocuments {
  readonly documents: readonly StoredDocument[]
  /** Null for one document by its ID, or none. */
  readonly page: Page | null
}

export interface RunnerHost {
  /** The most that its call was seen to add to the runner's memory, where it was seen at all. */
  grownBytes?: number
  /**
   * A Refusal is thrown inside the author's code; anything else that it throws ends the call, and
   * `invoke` throws it.
   */
  operation(
    operation: Operation,
    invokePart: InvokePart,
  ): OperationAnswer | Promise<OperationAnswer>
}

export type RunnerLimit = 'cpu' | 'memory' | 'result' | 'operations'

/** How a runner came to its end, for the call at fault. */
export type RunnerFate =
  | { readonly kind: 'limit'; readonly limit: 'cpu' | 'memory' }
  /** `detail` is for the log. */
  | { readonly kind: 'broken'; readonly detail: string }

export type RunnerOutcome =
  | ({
      readonly kind: 'returned'
      /** Names documents of the call by their place in `documents`, as `{"$r":0}`. */
      readonly result: StoredJson
      /** All that its operations were answered with, in that order. */
      readonly documents: readonly StoredDocument[]
    } & CallUsage)
  | ({ readonly kind: 'failed'; readonly code: string } & CallUsage)
  | ({ readonly kind: 'threw'; readonly error: ErrorReport } & CallUsage)
  | ({ readonly kind: 'limit'; readonly limit: RunnerLimit } & Partial<CallUsage>)
  | RunnerFate
  | { readonly kind: 'deadline' | 'cancelled' }
  /** The runner ended under this call through the fault of another: run it again. */
  | { readonly kind: 'lost' }
  /** An operation that the speculative call assumed to succeed failed: repeat it synchronously. */
  | { readonly kind: 'misspeculated' }

/** Why a runner does not come to hold a Release. */
export type LoadFailure =
  | { readonly kind: 'threw'; readonly error: ErrorReport }
  | RunnerFate
  | { readonly kind: 'deadline' | 'cancelled' | 'lost' }

export type DescribeOutcome =
  | { readonly kind: 'described'; readonly description: unknown }
  | LoadFailure

export type OutcomeMessage = Extract<FromRunner, { readonly usage: CallUsage }>

export function outcomeOf(
  message: OutcomeMessage,
  documents: readonly StoredDocument[],
): RunnerOutcome {
  const { usage } = message
  switch (message.type) {
    case 'returned':
      return { kind: 'returned', result: message.result, documents, ...usage }
    case 'failed':
      return { kind: 'failed', code: message.code, ...usage }
    case 'threw':
      return { kind: 'threw', error: message.error, ...usage }
    case 'limit':
      return { kind: 'limit', limit: message.limit, ...usage }
    case 'void':
      return { kind: 'misspeculated' }
  }
}
