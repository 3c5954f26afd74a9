/** Queries: a cached result while what it read stands, else one run at the newest snapshot. */

import type { DocumentStore } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import type { Committer } from '../commits/committer.ts'
import { CLOCK_CACHE_MILLIS } from '../limits.ts'
import type { QueryCache, ResultKeys } from '../query-cache/query-cache.ts'
import type { CancellationToken } from '../runners/outcomes.ts'
import { Transaction } from '../transactions/transaction.ts'
import type { ConfigurationState } from './configuration.ts'
import {
  beginInvocation,
  type CompletedRun,
  type Invocation,
  type InvocationPort,
  LostRunCounter,
  run,
} from './invocations.ts'

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
type QueryInput = QueryCall & Pick<Invocation, 'context' | 'signal' | 'arrivedMillis'>

/** One execution, and all who wait for it: when the last of them is gone, it stops. */
class Shared implements CancellationToken {
  readonly snapshot: number
  readonly configuration: ConfigurationState
  readonly callers: (CancellationToken | undefined)[]
  outcome: Promise<QueryOutcome> | null = null

  constructor(
    seen: Pick<Shared, 'snapshot' | 'configuration'>,
    caller: CancellationToken | undefined,
  ) {
    this.snapshot = seen.snapshot
    this.configuration = seen.configuration
    this.callers = [caller]
  }

  get aborted(): boolean {
    return this.callers.every((caller) => caller?.aborted === true)
  }
}

export class Queries {
  readonly #port: QueryPort
  /** Executions that equal calls at the same snapshot wait for. */
  readonly #running = new TransientMap<string, Shared>()

  constructor(port: QueryPort) {
    this.#port = port
  }

  /** The result that is kept, at the newest durable sequence; null where there is none. */
  find(keys: ResultKeys): QueryOutcome | null {
    const { cache, committer } = this.#port
    const cached = cache.get(keys)
    if (cached === null) return null
    const snapshotSequence = cached.hasRead ? committer.durable : null
    return { resultText: cached.resultText, snapshotSequence }
  }

  /** Runs the Function, or waits for an equal call that runs at the same snapshot. */
  invoke(input: QueryInput, keys: ResultKeys): Promise<QueryOutcome> {
    const seen = {
      snapshot: this.#port.committer.durable,
      configuration: this.#port.configuration.current,
    }
    // Whether it will look at the caller is not known yet.
    const running = this.#running.get(keys.own)
    // One that began before a change may not show it, so only what sees the same is shared.
    const seesSame =
      running?.snapshot === seen.snapshot && running.configuration === seen.configuration
    if (seesSame && !running.aborted) {
      running.callers.push(input.signal)
      return running.outcome!
    }
    const shared = new Shared(seen, input.signal)
    this.#running.set(keys.own, shared)
    shared.outcome = this.#execute(keys, input, shared)
    return shared.outcome
  }

  async #execute(keys: ResultKeys, input: QueryInput, shared: Shared): Promise<QueryOutcome> {
    const { system } = this.#port
    const invocation = beginInvocation(this.#port, input, shared)
    const losses = new LostRunCounter()
    try {
      while (system.monotonicMillis() < invocation.deadline) {
        const outcome = await this.#attempt(keys, invocation)
        if (outcome !== null) return outcome
        losses.add()
      }
      throw new Fault('DEADLINE_EXCEEDED')
    } finally {
      if (this.#running.get(keys.own) === shared) this.#running.delete(keys.own)
    }
  }

  /** Null where it has to be run again. */
  async #attempt(keys: ResultKeys, invocation: Invocation): Promise<QueryOutcome | null> {
    const { store, committer } = this.#port
    const use = committer.pinSnapshot()
    const transaction = new Transaction({
      store,
      release: invocation.prepared,
      snapshot: committer.durable,
      pending: null,
      nowMicros: invocation.nowMicros,
      seed: invocation.seed,
      writable: false,
    })
    try {
      const ran = await run(this.#port, invocation, transaction)
      if (ran === null) return null
      this.#keep(keys, ran, { transaction, configuration: invocation.configuration })
      return {
        resultText: ran.resultText,
        snapshotSequence: transaction.hasRead ? transaction.snapshot : null,
      }
    } finally {
      committer.unpinSnapshot(use)
    }
  }

  #keep(
    keys: ResultKeys,
    ran: CompletedRun,
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

/** The own key has the whole identity in it: roles may change where the subject does not. */
export function keysOf(
  { definition, principal }: Pick<QueryCall, 'definition' | 'principal'>,
  callKey: string,
): ResultKeys {
  // A Function that sees nobody has no result of one caller alone.
  if (definition.auth === 'none') return { shared: callKey, own: callKey }
  return { shared: callKey, own: `${callKey}\n${principal?.identityText ?? ''}` }
}
