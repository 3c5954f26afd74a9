/** Queries: a cached result while what it read stands, else one run at the newest snapshot. */

import type { DocumentStore } from '../documents/store.ts'
import { Fault } from '../errors/fault.ts'
import type { Committer } from './commits/committer.ts'
import type { ConfigurationState } from './configuration.ts'
import {
  beginInvocation,
  type Invocation,
  type InvocationPort,
  type Ran,
  run,
  seededEntropy,
} from './invocations.ts'
import { CLOCK_CACHE_MILLIS } from './limits.ts'
import type { QueryCache, ResultKeys } from './query-cache/query-cache.ts'
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

type QueryCall = Pick<Invocation, 'prepared' | 'definition' | 'argumentsText' | 'principal'>
type QueryInput = QueryCall & Pick<Invocation, 'context' | 'signal'>

interface Shared {
  readonly snapshot: number
  readonly configuration: ConfigurationState
  readonly outcome: Promise<QueryOutcome>
  /** Callers that wait for it. The last one that leaves stops it. */
  waiting: number
  readonly abort: AbortController
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
    const cached = cache.get(keysOf(call))
    if (cached === null) return null
    const snapshotSequence = cached.hasRead ? committer.durable : null
    return { resultText: cached.resultText, snapshotSequence }
  }

  /** Runs the Function, or waits for an equal call that runs at the same snapshot. */
  async invoke(input: QueryInput): Promise<QueryOutcome> {
    const { committer } = this.#port
    const { current } = this.#port.configuration
    const keys = keysOf(input)
    // Whether it will look at the caller is not known yet.
    const key = keys.own
    const running = this.#running.get(key)
    // One that began before a change may not show it, so only what sees the same is shared.
    const seesSame = running?.snapshot === committer.durable && running.configuration === current
    if (seesSame && !running.abort.signal.aborted) return waitFor(running, input.signal)
    const abort = new AbortController()
    const outcome = this.#execute(keys, { ...input, signal: abort.signal })
    const seen = { snapshot: committer.durable, configuration: current }
    const shared: Shared = { ...seen, outcome, waiting: 0, abort }
    this.#running.set(key, shared)
    try {
      return await waitFor(shared, input.signal)
    } finally {
      if (this.#running.get(key) === shared) this.#running.delete(key)
    }
  }

  async #execute(keys: ResultKeys, input: QueryInput): Promise<QueryOutcome> {
    const { store, committer, system } = this.#port
    const invocation = beginInvocation(this.#port, input)
    while (system.monotonicMillis() < invocation.deadline) {
      const transaction = new Transaction({
        store,
        release: input.prepared,
        snapshot: committer.durable,
        unsettled: null,
        nowMicros: invocation.nowMicros,
        entropy: seededEntropy(invocation.seed),
        writable: false,
      })
      const ran = await run(this.#port, invocation, transaction)
      if (ran === null) continue
      this.#keep(keys, ran, { transaction, configuration: invocation.configuration })
      return {
        resultText: ran.resultText,
        snapshotSequence: transaction.hasRead ? transaction.snapshot : null,
      }
    }
    throw new Fault('DEADLINE_EXCEEDED')
  }

  #keep(
    keys: ResultKeys,
    ran: Ran,
    {
      transaction,
      configuration,
    }: { readonly transaction: Transaction; readonly configuration: ConfigurationState },
  ): void {
    const { cache, committer } = this.#port
    if (ran.usedRandom || committer.changedSince(transaction.readSet, transaction.snapshot)) return
    if (ran.usedConfiguration && configuration !== this.#port.configuration.current) return
    const result = {
      resultText: ran.resultText,
      hasRead: transaction.hasRead,
      configuration: ran.usedConfiguration ? configuration : null,
    }
    const key = ran.usedIdentity ? keys.own : keys.shared
    cache.put(key, result, transaction.readSet, ran.usedClock ? CLOCK_CACHE_MILLIS : null)
  }
}

async function waitFor(shared: Shared, signal: AbortSignal | undefined): Promise<QueryOutcome> {
  const leave = () => {
    shared.waiting -= 1
    if (shared.waiting === 0) shared.abort.abort()
  }
  shared.waiting += 1
  if (signal?.aborted === true) leave()
  else signal?.addEventListener('abort', leave)
  try {
    return await shared.outcome
  } finally {
    signal?.removeEventListener('abort', leave)
  }
}

/** The own key has the whole identity in it: roles may change where the subject does not. */
function keysOf({ prepared, definition, argumentsText, principal }: QueryCall): ResultKeys {
  const shared = `${prepared.release.releaseId}\n${definition.name}\n${argumentsText}`
  return { shared, own: `${shared}\n${principal?.identityText ?? ''}` }
}
