/** Queries: a cached result while what it read stands, else one run at the newest snapshot. */

import type { DocumentStore } from '../documents/store.ts'
import { Fault } from '../errors/fault.ts'
import type { Committer } from './committer.ts'
import {
  beginInvocation,
  type Invocation,
  type InvocationPort,
  type Ran,
  run,
  seededEntropy,
} from './invocations.ts'
import { CLOCK_CACHE_MILLIS } from './limits.ts'
import type { QueryCache } from './query-cache.ts'
import { Transaction } from './transaction.ts'

export interface QueryPort extends InvocationPort {
  readonly store: DocumentStore
  readonly committer: Committer
  readonly cache: QueryCache
}

export interface QueryOutcome {
  /** Tagged JSON. */
  readonly resultText: string
  /** The sequence that the result holds at; null where nothing was read. */
  readonly snapshotSequence: number | null
}

type QueryCall = Pick<Invocation, 'prepared' | 'definition' | 'argumentsText'>
type QueryInput = QueryCall & Pick<Invocation, 'context'>

interface Shared {
  readonly snapshot: number
  readonly outcome: Promise<QueryOutcome>
}

export class Queries {
  readonly #port: QueryPort
  /** Executions that equal calls at the same snapshot wait for. */
  readonly #running = new Map<string, Shared>()

  constructor(port: QueryPort) {
    this.#port = port
  }

  /** The result that is kept, at the newest durable sequence; null where there is none. */
  find(call: QueryCall): QueryOutcome | null {
    const { cache, committer } = this.#port
    const cached = cache.get(keyOf(call))
    if (cached === null) return null
    const snapshotSequence = cached.hasRead ? committer.durable : null
    return { resultText: cached.resultText, snapshotSequence }
  }

  /** Runs the Function, or waits for an equal call that runs at the same snapshot. */
  async invoke(input: QueryInput): Promise<QueryOutcome> {
    const { committer } = this.#port
    const key = keyOf(input)
    const running = this.#running.get(key)
    // One that began before a commit may not show it, so only the same snapshot is shared.
    if (running?.snapshot === committer.durable) return running.outcome
    const shared = { snapshot: committer.durable, outcome: this.#execute(key, input) }
    this.#running.set(key, shared)
    try {
      return await shared.outcome
    } finally {
      if (this.#running.get(key) === shared) this.#running.delete(key)
    }
  }

  async #execute(key: string, input: QueryInput): Promise<QueryOutcome> {
    const { store, committer, system } = this.#port
    const invocation = beginInvocation(this.#port, input)
    while (system.monotonicMillis() < invocation.deadline) {
      const transaction = new Transaction({
        store,
        release: input.prepared,
        snapshot: committer.durable,
        nowMicros: invocation.nowMicros,
        entropy: seededEntropy(invocation.seed),
        writable: false,
      })
      const ran = await run(this.#port, invocation, transaction)
      if (ran === null) continue
      this.#keep(key, ran, transaction)
      return {
        resultText: ran.resultText,
        snapshotSequence: transaction.hasRead ? transaction.snapshot : null,
      }
    }
    throw new Fault('DEADLINE_EXCEEDED')
  }

  #keep(key: string, ran: Ran, transaction: Transaction): void {
    const { cache, committer } = this.#port
    if (ran.usedRandom || committer.changedSince(transaction.readSet, transaction.snapshot)) return
    const result = { resultText: ran.resultText, hasRead: transaction.hasRead }
    cache.put(key, result, transaction.readSet, ran.usedClock ? CLOCK_CACHE_MILLIS : null)
  }
}

function keyOf({ prepared, definition, argumentsText }: QueryCall): string {
  return `${prepared.release.releaseId}\n${definition.name}\n${argumentsText}`
}
