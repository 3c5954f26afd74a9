/**
 * Mutations: once for each operation ID. A repeat is answered from the record that the first one
 * committed with its writes; a conflict runs the Function again behind whoever won.
 */
import type { DocumentStore, OperationRecord } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { digestEquals, sha256 } from '../../system/digests.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { Committer, Turn } from '../commits/committer.ts'
import { ATTEMPTS_MAX, EXCLUSIVE_ATTEMPT, INVOCATIONS_MAX } from '../limits.ts'
import { namedDocuments } from '../speculation/prefetched-documents.ts'
import { Transaction } from '../transactions/transaction.ts'
import type { ActiveCalls } from './active-calls.ts'
import {
  beginInvocation,
  type CompletedRun,
  type Invocation,
  type InvocationInput,
  type InvocationPort,
  LostRunCounter,
  run,
} from './invocations.ts'

export interface MutationPort extends InvocationPort {
  readonly inFlight: ActiveCalls
  readonly store: DocumentStore
  readonly committer: Committer
}

export interface MutationInput extends Omit<InvocationInput, 'signal'> {
  readonly operationId: string
  /** As the caller named it. */
  readonly target: string
  /** The Application Client and the functional principal, as one text. */
  readonly caller: string
}

/** A request that was refused and may be a repeat; its values are unchecked. */
export interface Repeat extends Pick<MutationInput, 'operationId' | 'target'> {
  readonly function: string
  readonly arguments: ValueObject
}

export interface MutationOutcome {
  /** Tagged JSON. */
  readonly resultText: string
  readonly releaseId: string
  /** Null for a Mutation that wrote nothing. */
  readonly commitSequence: number | null
  readonly replayed: boolean
  /** Runs until the commit, the first included. */
  readonly attempts: number
}

interface Attempt {
  readonly input: MutationInput
  readonly fingerprint: Uint8Array
  /** From 1. */
  readonly number: number
  readonly turn: Turn | null
}

interface Running {
  readonly fingerprint: Uint8Array
  /** Null only until its first step has returned. */
  outcome: Promise<MutationOutcome> | null
}

export class Mutations {
  readonly #port: MutationPort
  readonly #running = new TransientMap<string, Running>()

  constructor(port: MutationPort) {
    this.#port = port
  }

  /**
   * Throws, or rejects with, OPERATION_REUSED where the ID was used for anything else; throws BUSY
   * where too many are not over, those included whose commit is late.
   */
  invoke(input: MutationInput): Promise<MutationOutcome> {
    const fingerprint = fingerprintOf(input)
    const running = this.#running.get(input.operationId)
    if (running !== undefined) {
      checkSame(running.fingerprint, fingerprint)
      return replayed(running.outcome!)
    }
    if (this.#running.size >= INVOCATIONS_MAX) throw new Fault('BUSY', { detail: 'Mutations' })
    const record = this.#port.store.operation(input.operationId)
    if (record !== null && !(record instanceof Promise)) {
      return Promise.resolve(replay(record, fingerprint))
    }
    const first: Running = { fingerprint, outcome: null }
    this.#running.set(input.operationId, first)
    first.outcome = this.#execute(input, fingerprint, record)
    return first.outcome
  }

  /**
   * The outcome of the operation that this is an exact repeat of, by one of the callers; null for
   * an operation that is not known, for which no caller is asked for. Rejects with OPERATION_REUSED
   * where the ID was used for anything else.
   */
  async repeated(repeat: Repeat, callers: AsyncIterable<string>): Promise<MutationOutcome | null> {
    const { operationId, target } = repeat
    const running = this.#running.get(operationId)
    const known = running ?? (await this.#port.store.operation(operationId))
    if (known === null) return null
    const definition = { name: repeat.function }
    const argumentsText = encodeStored(repeat.arguments)
    for await (const caller of callers) {
      const fingerprint = fingerprintOf({ target, definition, caller, argumentsText })
      if (!digestEquals(known.fingerprint, fingerprint)) continue
      return 'outcome' in known ? replayed(known.outcome!) : replay(known, fingerprint)
    }
    throw new Fault('OPERATION_REUSED')
  }

  /** `found` is null where there is no record of the operation. */
  async #execute(
    input: MutationInput,
    fingerprint: Uint8Array,
    found: Promise<OperationRecord | null> | null,
  ): Promise<MutationOutcome> {
    const { committer, system } = this.#port
    let turn: Turn | null = null
    let settled: Promise<void> | null = null
    try {
      const record = found === null ? null : await found
      if (record !== null) return replay(record, fingerprint)
      // It is carried out whoever waits: the record is what answers a repeat.
      const invocation = beginInvocation(this.#port, input, undefined)
      if (committer.isContended) turn = await this.#turnInAdvance(input, invocation)
      const losses = new LostRunCounter()
      let attempts = 0
      while (attempts < ATTEMPTS_MAX) {
        if (system.monotonicMillis() >= invocation.deadline) throw new Fault('DEADLINE_EXCEEDED')
        const attempt = { input, fingerprint, number: attempts + 1, turn }
        const attempted = await this.#attempt(invocation, attempt)
        if (attempted === null) {
          losses.add()
          continue
        }
        attempts += 1
        const { ran, outcome } = attempted
        if (outcome.kind === 'assigned') {
          // Whoever waits for the same keys reads what was assigned.
          turn?.release()
          settled = outcome.settled
          await outcome.durable
          settled = null
          return {
            resultText: ran.resultText,
            releaseId: input.prepared.release.releaseId,
            commitSequence: outcome.sequence,
            replayed: false,
            attempts,
          }
        }
        turn?.release()
        turn =
          attempts + 1 >= EXCLUSIVE_ATTEMPT || outcome.keys.length === 0
            ? await committer.takeExclusiveTurn(invocation.deadline)
            : await committer.takeTurn(outcome.keys, invocation.deadline)
      }
      throw new Fault('WRITE_CONFLICT')
    } finally {
      turn?.release()
      if (settled === null) this.#running.delete(input.operationId)
      else this.#keepUntil(settled, input)
    }
  }

  /** While it may still become durable it needs its Release, and no repeat runs beside it. */
  #keepUntil(settled: Promise<void>, { operationId, prepared }: MutationInput): void {
    const end = this.#port.inFlight.beginLate(prepared.release)
    void settled.then(() => {
      this.#running.delete(operationId)
      end()
    })
  }

  /** In line at once for those documents of its arguments that others stand in line for. */
  async #turnInAdvance(
    { argumentsText }: MutationInput,
    { deadline }: Invocation,
  ): Promise<Turn | null> {
    const { committer } = this.#port
    const keys = committer.contended(namedDocuments(argumentsText))
    return keys.length === 0 ? null : committer.takeTurn(keys, deadline)
  }

  /** Null where it has to be run again. */
  async #attempt(invocation: Invocation, attempt: Attempt) {
    const { committer } = this.#port
    const use = committer.pinSnapshot()
    const transaction = this.#transaction(invocation)
    try {
      const ran = await run(this.#port, invocation, transaction)
      if (ran === null) return null
      const outcome = this.#commit(transaction, ran, attempt)
      return { ran, outcome: outcome instanceof Promise ? await outcome : outcome }
    } catch (error) {
      // What fails because of what it read is told when that is durable.
      if (transaction.readUnsettled || transaction.isLost) await transaction.whenDurable()
      throw error
    } finally {
      committer.unpinSnapshot(use)
    }
  }

  #transaction(invocation: Invocation): Transaction {
    const { committer } = this.#port
    return new Transaction({
      store: this.#port.store,
      release: invocation.prepared,
      snapshot: committer.assigned,
      pending: committer.pending,
      nowMicros: invocation.nowMicros,
      seed: invocation.seed,
      writable: true,
    })
  }

  #commit(
    transaction: Transaction,
    ran: CompletedRun,
    { input, fingerprint, number, turn }: Attempt,
  ) {
    const { committer, system } = this.#port
    const atMicros = system.nowMicros()
    return committer.commit({
      snapshot: transaction.snapshot,
      pending: transaction.pending,
      readSet: transaction.readSet,
      writes: transaction.writes(),
      atMicros,
      operation: {
        operationId: input.operationId,
        fingerprint,
        releaseId: input.prepared.release.releaseId,
        function: input.definition.name,
        result: ran.resultText,
        attempts: number,
        createdAtMicros: atMicros,
      },
      turn,
    })
  }
}

interface Fingerprinted extends Pick<MutationInput, 'target' | 'caller' | 'argumentsText'> {
  readonly definition: Pick<FunctionManifest, 'name'>
}

/** Everything that an exact repeat has in common (Document 2, Mutation operation). */
function fingerprintOf({ target, definition, caller, argumentsText }: Fingerprinted): Uint8Array {
  // The lengths tell where each part ends.
  const lengths = `${target.length},${definition.name.length},${caller.length}`
  return sha256(`${lengths}\n${target}${definition.name}${caller}${argumentsText}`)
}

function checkSame(a: Uint8Array, b: Uint8Array): void {
  if (!digestEquals(a, b)) throw new Fault('OPERATION_REUSED')
}

async function replayed(outcome: Promise<MutationOutcome>): Promise<MutationOutcome> {
  return { ...(await outcome), replayed: true }
}

/** Raises OPERATION_REUSED. */
function replay(record: OperationRecord, fingerprint: Uint8Array): MutationOutcome {
  checkSame(record.fingerprint, fingerprint)
  return {
    resultText: record.result,
    releaseId: record.releaseId,
    commitSequence: record.commitSequence,
    replayed: true,
    attempts: record.attempts,
  }
}
