/**
 * Executes Mutations exactly once per operation ID. A repeat gets the result from the record that
 * the original committed with its writes. After a conflict the Function runs again, with a lock on
 * the conflicting keys.
 */
import type { DocumentStore, OperationRecord } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { digestEquals } from '../../system/digests.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CommitLock, CommitRequest, Committer } from '../commits/committer.ts'
import { type BufferedWrite, countSchedules } from '../commits/document-writes.ts'
import { ATTEMPTS_MAX, EXCLUSIVE_ATTEMPT, INVOCATIONS_MAX } from '../limits.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import { completeWork } from '../scheduled-work/completion.ts'
import { keepResult } from '../scheduled-work/scheduled-documents.ts'
import { namedDocuments } from '../speculation/prefetched-documents.ts'
import { Transaction } from '../transactions/transaction.ts'
import { type InvocationPort, prefetch, runAttempt } from './attempt.ts'
import {
  beginInvocation,
  type Invocation,
  type InvocationInput,
  LostRunCounter,
  type Prefetched,
} from './invocation.ts'
import { type DocumentSystem, tracedCommit } from './invocation-spans.ts'
import { checkFingerprint, fingerprintOf } from './operation-fingerprints.ts'
import type { CompletedRun } from './run-outcomes.ts'

export interface MutationPort extends InvocationPort {
  readonly inFlight: ActiveCalls
  readonly store: DocumentStore
  readonly committer: Committer
  readonly documentSystem?: DocumentSystem | undefined
}

export interface MutationInput extends Omit<InvocationInput, 'signal'> {
  readonly operationId: string
  /** The target in the caller's own words, such as a Channel. */
  readonly target: string
  /** The Application Client and the functional principal, as one text. */
  readonly caller: string
  /** Stored JSON of the arguments without defaults; absent where the server made all of them. */
  readonly givenText?: string
  /** Runs in the server in place of a Function, and returns the result as the record keeps it. */
  readonly perform?: (transaction: Transaction, invocation: Invocation) => MaybePromise<string>
  /** False for a batch of a migration: its own writes tell whether it ran. */
  readonly isRecorded?: false
  /** The piece of scheduled work that the Mutation is; absent for a call. */
  readonly scheduledId?: string
  /** True if the scheduled work keeps the result of the Mutation. */
  readonly keepsResult?: boolean
}

/** A request that was rejected and may be a repeat. Its arguments are not validated. */
export interface ReplayRequest extends Pick<MutationInput, 'operationId' | 'target'> {
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
  /** Number of attempts until the commit, including the first one. */
  readonly attempts: number
  /** Pieces of work that it scheduled; 0 for a repeat. */
  readonly schedulesCreated: number
}

interface Attempt {
  readonly input: MutationInput
  readonly fingerprint: Uint8Array
  /** Starts at 1. */
  readonly number: number
  readonly lock: CommitLock | null
}

interface RunningMutation {
  readonly fingerprint: Uint8Array
  /** Null only until its first step has returned. */
  outcome: Promise<MutationOutcome> | null
}

export class Mutations {
  readonly #port: MutationPort
  /** The running Mutations by operation ID, including those whose commit is stalled. */
  readonly #running = new TransientMap<string, RunningMutation>()

  constructor(port: MutationPort) {
    this.#port = port
  }

  /**
   * Throws, or rejects with, OPERATION_REUSED where the ID belongs to another request. Throws BUSY
   * beyond the bound, which counts Mutations with a stalled commit too.
   */
  invoke(input: MutationInput): Promise<MutationOutcome> {
    const { givenText = input.argumentsText } = input
    const fingerprint = fingerprintOf({ ...input, argumentsText: givenText })
    const running = this.#running.get(input.operationId)
    if (running !== undefined) {
      checkFingerprint(running.fingerprint, fingerprint)
      return replayedOutcome(running.outcome!)
    }
    if (this.#running.size >= INVOCATIONS_MAX) throw new Fault('BUSY', { detail: 'Mutations' })
    const record = this.#port.store.operation(input.operationId)
    if (record !== null && !(record instanceof Promise)) {
      return Promise.resolve(recordedOutcome(record, fingerprint))
    }
    const original: RunningMutation = { fingerprint, outcome: null }
    this.#running.set(input.operationId, original)
    original.outcome = this.#execute(input, fingerprint, record)
    return original.outcome
  }

  /**
   * Returns the outcome of the original where the request is an exact repeat by one of the callers;
   * null for an unknown operation ID, without reading `callers`. Rejects with OPERATION_REUSED
   * where the ID belongs to another request.
   */
  async replay(
    request: ReplayRequest,
    callers: AsyncIterable<string>,
  ): Promise<MutationOutcome | null> {
    const { operationId, target } = request
    const running = this.#running.get(operationId)
    const original = running ?? (await this.#port.store.operation(operationId))
    if (original === null) return null
    const definition = { name: request.function }
    const argumentsText = encodeStored(request.arguments)
    for await (const caller of callers) {
      const fingerprint = fingerprintOf({ target, definition, caller, argumentsText })
      if (!digestEquals(original.fingerprint, fingerprint)) continue
      return 'outcome' in original
        ? replayedOutcome(original.outcome!)
        : recordedOutcome(original, fingerprint)
    }
    throw new Fault('OPERATION_REUSED')
  }

  /** `recordRead` is null if the operation has no record. */
  async #execute(
    input: MutationInput,
    fingerprint: Uint8Array,
    recordRead: Promise<OperationRecord | null> | null,
  ): Promise<MutationOutcome> {
    const { committer, system } = this.#port
    let lock: CommitLock | null = null
    let outcomeKnown: Promise<void> | null = null
    try {
      const record = recordRead === null ? null : await recordRead
      if (record !== null) return recordedOutcome(record, fingerprint)
      // No cancellation token: a Mutation completes even if its caller disconnects.
      const invocation = beginInvocation(this.#port, input, undefined)
      const lostRuns = new LostRunCounter()
      let attempts = 0
      while (attempts < ATTEMPTS_MAX) {
        if (system.monotonicMillis() >= invocation.deadline) throw new Fault('DEADLINE_EXCEEDED')
        const attempt = { input, fingerprint, number: attempts + 1, lock }
        const attempted = await this.#attempt(invocation, attempt)
        if (attempted === null) {
          lostRuns.add()
          continue
        }
        if ('contended' in attempted) {
          lock = await committer.acquireLock(attempted.contended, invocation.deadline)
          continue
        }
        attempts += 1
        const { run, outcome } = attempted
        if (outcome.kind === 'assigned') {
          // The next owner of the lock reads the pending commit.
          lock?.release()
          outcomeKnown = outcome.outcomeKnown
          await outcome.durable
          outcomeKnown = null
          return {
            resultText: run.resultText,
            releaseId: input.prepared.release.releaseId,
            commitSequence: outcome.sequence,
            replayed: false,
            attempts,
            schedulesCreated: attempted.schedulesCreated,
          }
        }
        lock?.release()
        lock =
          attempts + 1 >= EXCLUSIVE_ATTEMPT || outcome.keys.length === 0
            ? await committer.acquireGlobalLock(invocation.deadline)
            : await committer.acquireLock(outcome.keys, invocation.deadline)
      }
      throw new Fault('WRITE_CONFLICT')
    } finally {
      lock?.release()
      if (outcomeKnown === null) this.#running.delete(input.operationId)
      else this.#retainUntil(outcomeKnown, input)
    }
  }

  /**
   * Retains the Release and the operation ID while a stalled commit may still become durable, so
   * that no repeat runs meanwhile.
   */
  #retainUntil(outcomeKnown: Promise<void>, { operationId, prepared }: MutationInput): void {
    const end = this.#port.inFlight.beginDetached(prepared.release)
    void outcomeKnown.then(() => {
      this.#running.delete(operationId)
      end()
    })
  }

  /**
   * Returns the documents to lock first, of those that the arguments name or a predicted range has:
   * an attempt without the locks would probably conflict. Empty once it holds a lock, since waiting
   * for more could be a deadlock.
   */
  #contendedDocuments(
    { argumentsText, definition }: Invocation,
    prefetched: Prefetched | undefined,
    { lock }: Attempt,
  ): readonly string[] {
    const { committer } = this.#port
    if (lock !== null || !committer.hasContention) return []
    const found = prefetched?.documents.map(({ id }) => id) ?? []
    const ids = new Set([...namedDocuments(argumentsText), ...found])
    return committer.contendedKeys(definition.name, [...ids])
  }

  /**
   * Returns null if the attempt was lost or misspeculated, and the documents to lock if it should
   * not be made without their locks.
   */
  async #attempt(invocation: Invocation, attempt: Attempt) {
    const { committer } = this.#port
    const pin = committer.pinSnapshot()
    const transaction = this.#transaction(invocation)
    try {
      const { perform, scheduledId } = attempt.input
      if (scheduledId !== undefined) await completeWork(transaction, scheduledId, invocation)
      const isSpeculative = perform === undefined && invocation.isSpeculative
      const reading = isSpeculative ? prefetch(this.#port, invocation, transaction) : undefined
      const prefetched = reading instanceof Promise ? await reading : reading
      const contended = this.#contendedDocuments(invocation, prefetched, attempt)
      if (contended.length > 0) return { contended }
      const run =
        perform === undefined
          ? await runAttempt(this.#port, invocation, transaction, prefetched)
          : { resultText: await perform(transaction, invocation) }
      if (run === null) return null
      if (scheduledId !== undefined && attempt.input.keepsResult) {
        await keepResult(transaction.asServer(), scheduledId, run.resultText)
      }
      const writes = transaction.writes()
      const outcome = this.#commit(transaction, writes, run, attempt)
      return {
        run,
        outcome: outcome instanceof Promise ? await outcome : outcome,
        schedulesCreated: countSchedules(writes),
      }
    } catch (error) {
      // A failure may follow from pending commits, so it is reported once they are durable.
      if (transaction.hasReadPending || transaction.isRolledBack) await transaction.whenDurable()
      throw error
    } finally {
      committer.unpinSnapshot(pin)
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
    writes: readonly BufferedWrite[],
    { resultText }: Pick<CompletedRun, 'resultText'>,
    { input, fingerprint, number, lock }: Attempt,
  ) {
    const { committer, system, documentSystem } = this.#port
    const atMicros = system.nowMicros()
    const span = input.trace?.isSampled
      ? input.trace.child({
          name: 'commit',
          kind: 'client',
          attributes: {
            'db.system.name': documentSystem,
            'db.operation.name': 'COMMIT',
            'svc.commit.attempt': number,
            'svc.commit.writes': writes.length,
          },
        })
      : null
    const request: CommitRequest = {
      snapshot: transaction.snapshot,
      pending: transaction.pending,
      readSet: transaction.readSet,
      writes,
      atMicros,
      // No caller repeats scheduled work: its state tells whether it ran.
      operation:
        input.scheduledId === undefined && input.isRecorded !== false
          ? {
              operationId: input.operationId,
              fingerprint,
              releaseId: input.prepared.release.releaseId,
              function: input.definition.name,
              result: resultText,
              attempts: number,
              createdAtMicros: atMicros,
            }
          : null,
      lock,
    }
    const commit = () => committer.commit(request)
    return span === null ? commit() : tracedCommit(span, commit)
  }
}

async function replayedOutcome(outcome: Promise<MutationOutcome>): Promise<MutationOutcome> {
  return { ...(await outcome), replayed: true }
}

/** Throws OPERATION_REUSED where the request is not an exact repeat. */
function recordedOutcome(record: OperationRecord, fingerprint: Uint8Array): MutationOutcome {
  checkFingerprint(record.fingerprint, fingerprint)
  return {
    resultText: record.result,
    releaseId: record.releaseId,
    commitSequence: record.commitSequence,
    replayed: true,
    attempts: record.attempts,
    schedulesCreated: 0,
  }
}
