/** Calls in runners, their hosts and their outcomes. */
import type { StoredDocument } from '../../documents/store.ts'
import type {
  CallUsage,
  ErrorReport,
  FromRunner,
  InvokeRequest,
  MisspeculationCause,
  Page,
  PrefetchedPage,
} from '../../runner/protocol/messages.ts'
import type { Operation, StoredJson } from '../../runner/protocol/operations.ts'

/** Cancels a call. The runner pool polls it some 40 times a second, so the getter may do work. */
export interface CancellationToken {
  /** True if no caller waits for the outcome. */
  readonly aborted: boolean
}

export interface RunnerCall extends InvokeRequest {
  /** Monotonic milliseconds after which a call that still waits for a runner is BUSY. */
  readonly startByMillis?: number | undefined
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly signal?: CancellationToken | undefined
  /**
   * Documents that a speculative call receives with its arguments. Absent for a synchronous call,
   * as is every call of a Function by a Function.
   */
  readonly prefetched?: readonly StoredDocument[] | undefined
  /**
   * True if the code receives placeholders in place of documents. It must be speculative then, and
   * a root call.
   */
  readonly placeholders?: boolean | undefined
  /** Pages that it receives too; their documents are the last ones of `prefetched`. */
  readonly prefetchedPages?: readonly PrefetchedPage[] | undefined
}

/** Runs a called Function as part of the calling one: in its runner and on its CPU time. */
export type InvokePart = (call: RunnerCall, host: RunnerHost) => Promise<RunnerOutcome>

/** The InvokePart of operations that call no other Function. */
export const noParts: InvokePart = () => Promise.resolve({ kind: 'lost' })

/** Stored JSON, or documents that the runner may hold from an earlier call. */
export type OperationResult = string | FoundDocuments

export interface FoundDocuments {
  readonly documents: readonly StoredDocument[]
  /** Null for a read by ID. */
  readonly page: Page | null
}

/** Performs the operations of a call in the server. */
export interface RunnerHost {
  /** Largest observed growth of the runner's memory by the call; absent where not observed. */
  grownBytes?: number
  /**
   * Performs an operation. An OperationError is thrown inside the author's code; any other error
   * ends the call, and `invoke` rejects with it.
   */
  operation(
    operation: Operation,
    invokePart: InvokePart,
  ): OperationResult | Promise<OperationResult>
}

export type RunnerLimit = 'cpu' | 'memory' | 'result' | 'operations'

/** The reason why a runner ended, as the outcome of the responsible call. */
export type RunnerFate =
  | { readonly kind: 'limit'; readonly limit: 'cpu' | 'memory' }
  /** `detail` is for the log. */
  | { readonly kind: 'broken'; readonly detail: string }

export type RunnerOutcome =
  | ({
      readonly kind: 'returned'
      /** References documents of the call by their index in `documents`, as `{"$r":0}`. */
      readonly result: StoredJson
      /** The prefetched documents, then those that its operations returned, in that order. */
      readonly documents: readonly StoredDocument[]
    } & CallUsage)
  | ({ readonly kind: 'failed'; readonly code: string } & CallUsage)
  | ({ readonly kind: 'threw'; readonly error: ErrorReport } & CallUsage)
  | ({ readonly kind: 'limit'; readonly limit: RunnerLimit } & Partial<CallUsage>)
  | RunnerFate
  | { readonly kind: 'deadline' | 'cancelled' }
  /** The runner ended for a reason that was not attributed to this call: run it again. */
  | { readonly kind: 'lost' }
  /** The call did not run as it was assumed to: repeat it in another way. */
  | { readonly kind: 'misspeculated'; readonly cause: MisspeculationCause }

/** The reason why a runner failed to load a Release. */
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
    case 'misspeculated':
      return { kind: 'misspeculated', cause: message.cause }
  }
}
