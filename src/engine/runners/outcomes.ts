/** What becomes of one call in a runner. */
import type { CallUsage, ErrorReport, FromRunner, InvokeRequest } from '../../runner/messages.ts'
import type { Operation, StoredJson } from '../../runner/operations.ts'

export interface RunnerCall extends Omit<InvokeRequest, 'seed' | 'root'> {
  /** 32 bytes that all randomness of the call comes from. */
  readonly seed: Uint8Array
  /** Monotonic milliseconds. */
  readonly deadline: number
  /** Aborted when nobody waits for the outcome any more. */
  readonly signal?: AbortSignal | undefined
}

/** Runs a call as part of the one that asked for it: in its runner, on its CPU time. */
export type InvokePart = (call: RunnerCall, host: RunnerHost) => Promise<RunnerOutcome>

export interface RunnerHost {
  /**
   * Answers Stored JSON. A Refusal is thrown inside the author's code; anything else that it
   * throws ends the call, and `invoke` throws it.
   */
  operation(operation: Operation, invokePart: InvokePart): string | Promise<string>
}

export type RunnerLimit = 'cpu' | 'memory' | 'result' | 'operations'

/** How a runner came to its end, for the call at fault. */
export type RunnerFate =
  | { readonly kind: 'limit'; readonly limit: 'cpu' | 'memory' }
  /** `detail` is for the log. */
  | { readonly kind: 'broken'; readonly detail: string }

export type RunnerOutcome =
  | ({ readonly kind: 'returned'; readonly result: StoredJson } & CallUsage)
  | ({ readonly kind: 'failed'; readonly code: string } & CallUsage)
  | ({ readonly kind: 'threw'; readonly error: ErrorReport } & CallUsage)
  | ({ readonly kind: 'limit'; readonly limit: RunnerLimit } & Partial<CallUsage>)
  | RunnerFate
  | { readonly kind: 'deadline' | 'cancelled' }
  /** The runner ended under this call through the fault of another: run it again. */
  | { readonly kind: 'lost' }

/** Why a runner does not come to hold a Release. */
export type LoadFailure =
  | { readonly kind: 'threw'; readonly error: ErrorReport }
  | RunnerFate
  | { readonly kind: 'deadline' | 'cancelled' | 'lost' }

export type DescribeOutcome =
  | { readonly kind: 'described'; readonly description: unknown }
  | LoadFailure

type Outcome = Extract<FromRunner, { readonly usage: CallUsage }>

export function outcomeOf(message: Outcome): RunnerOutcome {
  const { usage } = message
  switch (message.type) {
    case 'returned':
      return { kind: 'returned', result: message.result, ...usage }
    case 'failed':
      return { kind: 'failed', code: message.code, ...usage }
    case 'threw':
      return { kind: 'threw', error: message.error, ...usage }
    case 'limit':
      return { kind: 'limit', limit: message.limit, ...usage }
  }
}
