/** The calls of one runner, as the server tracks them. */
import type { StoredDocument } from '../../documents/store.ts'
import type { Operation } from '../../runner/protocol/operations.ts'
import type {
  CancellationToken,
  OutcomeMessage,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from '../calls/outcomes.ts'

export interface InFlight {
  readonly id: number
  readonly function: string
  /** ID of the root call; its own ID for a root call. */
  readonly root: number
  /** The Function of the root call. */
  readonly rootFunction: string
  /** ID of the calling Function's call; 0 for a root call. */
  readonly parent: number
  readonly host: RunnerHost
  readonly deadline: number
  readonly signal: CancellationToken | undefined
  readonly end: (outcome: RunnerOutcome) => void
  readonly abort: (error: unknown) => void
  operations: number
  hasParts: boolean
  /** The prefetched documents, then those that its operations returned, in that order. */
  readonly documents: StoredDocument[]
  /** True if it is speculative: a rejected pipelined operation cannot be thrown in its code. */
  readonly isSpeculative: boolean
  /** True if its code receives placeholders in place of documents. */
  readonly hasPlaceholders: boolean
  /** Number of pipelined operations that the server has not completed yet. */
  pendingOperations: number
  /** The outcome that the runner sent, while pipelined operations are pending. */
  receivedOutcome: OutcomeMessage | null
}

export function inFlight(
  id: number,
  parent: InFlight | null,
  call: RunnerCall,
  { host, end, abort }: Pick<InFlight, 'host' | 'end' | 'abort'>,
): InFlight {
  const { deadline, signal, prefetched } = call
  return {
    id,
    function: call.function,
    root: parent?.root ?? id,
    rootFunction: parent?.rootFunction ?? call.function,
    parent: parent?.id ?? 0,
    host,
    deadline,
    signal,
    end,
    abort,
    operations: 0,
    hasParts: false,
    documents: prefetched === undefined ? [] : [...prefetched],
    isSpeculative: prefetched !== undefined,
    hasPlaceholders: call.placeholders === true,
    pendingOperations: 0,
    receivedOutcome: null,
  }
}

/** Most cancelled calls that a runner has not ended; one with more is replaced once it is idle. */
const CANCELLED_MAX = 1_024

/** A cancelled call. Where it keeps the runner busy, the runner's end is attributed to it. */
export type Cancelled = Pick<InFlight, 'root' | 'rootFunction'>

/** Calls that the server ended. Messages of them may still arrive from the runner. */
export class CancelledCalls {
  readonly #calls = new Map<number, Cancelled>()

  get isFull(): boolean {
    return this.#calls.size > CANCELLED_MAX
  }

  add({ id, root, rootFunction }: InFlight): void {
    this.#calls.set(id, { root, rootFunction })
  }

  has(id: number): boolean {
    return this.#calls.has(id)
  }

  get(id: number): Cancelled | undefined {
    return this.#calls.get(id)
  }

  /** Removes a call that the runner has ended. Returns whether it was a cancelled one. */
  end(id: number): boolean {
    return this.#calls.delete(id)
  }
}

interface Deferred {
  readonly call: InFlight
  /** Null for a pipelined operation, which gets no reply. */
  readonly id: number | null
  readonly op: Operation
  readonly characters: number
}

/** Operations that wait until their runner has read its backlog of replies (backpressure). */
export class DeferredOperations {
  readonly #waiting: Deferred[] = []
  #characters = 0

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Total characters of the waiting operations. */
  get characters(): number {
    return this.#characters
  }

  push(operation: Deferred): void {
    this.#waiting.push(operation)
    this.#characters += operation.characters
  }

  take(): Deferred | null {
    const next = this.#waiting.shift()
    if (next === undefined) return null
    this.#characters -= next.characters
    return next
  }
}
