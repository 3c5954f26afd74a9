/** What a runner is at work on, as the server knows it. */
import type { StoredDocument } from '../../documents/store.ts'
import type { Operation } from '../../runner/operations.ts'
import type {
  CancellationToken,
  OutcomeMessage,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from './outcomes.ts'

export interface InFlight {
  readonly id: number
  readonly function: string
  /** The call that it is part of; itself where it is part of none. */
  readonly root: number
  /** The Function of that one. */
  readonly rootFunction: string
  /** The call that made it; 0 where the server did. */
  readonly parent: number
  readonly host: RunnerHost
  readonly deadline: number
  readonly signal: CancellationToken | undefined
  readonly end: (outcome: RunnerOutcome) => void
  readonly abort: (error: unknown) => void
  operations: number
  hasParts: boolean
  /** Given ahead, then those that its operations were answered with, in that order. */
  readonly documents: StoredDocument[]
  /** Whether it runs ahead: its code cannot be told of most refusals where they happened. */
  readonly isSpeculative: boolean
  /** Operations that it told of and that are not worked yet. */
  told: number
  /** What the runner made of it, while some of those are left. */
  ending: OutcomeMessage | null
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
    told: 0,
    ending: null,
  }
}

/** Cancelled calls that a runner may still end; one with more is replaced once it is idle. */
const CANCELLED_MAX = 1_024

/** What is kept of them: a runner that one of them keeps busy is ended, and it is at fault. */
export type Cancelled = Pick<InFlight, 'root' | 'rootFunction'>

/** Ended by the server; the runner may still send what it sent before it knew. */
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

  /** Whether it was one of them. */
  end(id: number): boolean {
    return this.#calls.delete(id)
  }
}

interface Deferred {
  readonly call: InFlight
  /** Null where nobody waits for a reply. */
  readonly id: number | null
  readonly op: Operation
  readonly characters: number
}

/** Operations that wait until their runner has read what it was sent. */
export class DeferredOperations {
  readonly #waiting: Deferred[] = []
  #characters = 0

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Of those that wait. */
  get characters(): number {
    return this.#characters
  }

  push(one: Deferred): void {
    this.#waiting.push(one)
    this.#characters += one.characters
  }

  take(): Deferred | null {
    const next = this.#waiting.shift()
    if (next === undefined) return null
    this.#characters -= next.characters
    return next
  }
}
