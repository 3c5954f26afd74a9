/** One attempt of a Query or a Mutation: transaction, runner, log and usage. */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { MisspeculationCause, PrefetchedPage } from '../../runner/protocol/messages.ts'
import type { RangeRequest } from '../../runner/protocol/operations.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ConfigurationSource } from '../calls/function-configuration.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerOutcome } from '../calls/outcomes.ts'
import type { FunctionStorage } from '../files/function-storage.ts'
import type { RunnerPool } from '../runners/runner-pool.ts'
import type { PendingWork } from '../scheduled-work/pending-work.ts'
import { namedDocuments } from '../speculation/prefetched-documents.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { FunctionUsage } from '../usage/function-usage.ts'
import { type Cursors, type OperationContext, prefetchPage } from './context-operations.ts'
import { logOutcome } from './function-logs.ts'
import type { IssueGuest } from './guest-identities.ts'
import { type Invocation, type Prefetched, runnerCall } from './invocation.ts'
import { type CompletedRun, conclude } from './run-outcomes.ts'
import { type TransactionCalls, TransactionHost } from './transaction-host.ts'

export interface InvocationPort {
  readonly cursors: Cursors
  readonly issueGuest: IssueGuest
  readonly storage: FunctionStorage
  readonly configuration: ConfigurationSource
  readonly pendingWork: PendingWork
  readonly pool: RunnerPool
  readonly system: System
  readonly log: Logger
  readonly usage: FunctionUsage
}

/** The outcome of one run in a runner, and what its calls used. */
export interface AttemptOutcome {
  readonly outcome: RunnerOutcome
  readonly calls: TransactionCalls
}

/**
 * Reads what the next attempt, which is speculative, receives with its arguments: the documents
 * that they name, and the ranges that the Function is predicted to read.
 */
export function prefetch(
  { cursors }: Pick<InvocationPort, 'cursors'>,
  { prepared, definition, argumentsText }: Invocation,
  transaction: Transaction,
): MaybePromise<Prefetched> {
  const { speculation, reads } = prepared.functions.get(definition.name)!
  const documents = transaction.prefetch(namedDocuments(argumentsText), speculation.readsNamed)
  const predicted = reads.predict(argumentsText)
  if (predicted.length === 0) return { documents, pages: [] }
  return withPages({ prepared, transaction, cursors }, documents, predicted)
}

async function withPages(
  context: OperationContext,
  named: readonly StoredDocument[],
  predicted: readonly RangeRequest[],
): Promise<Prefetched> {
  // Code that reads a range twice gets the second page when it asks for it.
  const requests = new Map(predicted.map((each) => [JSON.stringify(['range', each]), each]))
  const read = [...requests].map(async ([operation, request]) => {
    return { operation, found: await prefetchedPage(context, request) }
  })
  const documents = [...named]
  const pages: PrefetchedPage[] = []
  for (const { operation, found } of await Promise.all(read)) {
    if (found === null) continue
    pages.push({ operation, count: found.documents.length, page: found.page! })
    documents.push(...found.documents)
  }
  return { documents, pages }
}

/** Returns null for what the code may not read: it gets the error where it tries. */
async function prefetchedPage(context: OperationContext, request: RangeRequest) {
  try {
    return await prefetchPage(context, request)
  } catch (error) {
    if (error instanceof OperationError || isFault(error, 'LIMIT_EXCEEDED')) return null
    throw error
  }
}

/**
 * Runs the Function once. Returns null if the caller has to repeat the attempt with a new
 * transaction: it was misspeculated, or its runner failed and the failure was not attributed to
 * this call. Throws every failure of an invocation.
 */
export async function runAttempt(
  port: InvocationPort,
  invocation: Invocation,
  transaction: Transaction,
  prefetched?: Prefetched,
): Promise<CompletedRun | null> {
  const { outcome, calls } = await invokeAttempt(port, invocation, transaction, prefetched)
  const completed = conclude(invocation, outcome, calls.failures, transaction.violations)
  if (completed === null) return null
  return {
    ...completed,
    usedClock: completed.usedClock || calls.usedClock,
    usedRandom: completed.usedRandom || calls.usedRandom,
    usedIdentity: completed.usedIdentity || calls.usedIdentity,
    usedConfiguration: calls.usedConfiguration,
    grantSeconds: calls.grantSeconds,
  }
}

/**
 * Runs the Function once and logs it; `prefetched` is what the caller has prefetched already.
 * Throws LIMIT_EXCEEDED of the transaction.
 */
export async function invokeAttempt(
  port: InvocationPort,
  invocation: Invocation,
  transaction: Transaction,
  prefetched?: Prefetched,
): Promise<AttemptOutcome> {
  const { prepared, definition } = invocation
  const reading =
    prefetched ?? (invocation.isSpeculative ? prefetch(port, invocation, transaction) : undefined)
  const given = reading instanceof Promise ? await reading : reading
  const call = runnerCall(invocation, given)
  // Undefined for the code of a migration, which is not speculative.
  const policies = prepared.functions.get(definition.name)
  // An attempt that was begun once is not given up.
  invocation.startByMillis = undefined
  const log = new AttemptLog(port.log, invocation)
  const calls: TransactionCalls = {
    prepared,
    transaction,
    cursors: port.cursors,
    principal: invocation.principal,
    issueGuest: port.issueGuest,
    storage: port.storage,
    configuration: invocation.configuration,
    pendingWork: port.pendingWork,
    log,
    reads: given === undefined ? null : (policies?.reads.observer() ?? null),
    failures: null,
    count: 0,
    characters: 0,
    schedules: 0,
    usedClock: false,
    usedRandom: false,
    usedIdentity: false,
    usedConfiguration: false,
    grantSeconds: null,
  }
  const host = new TransactionHost(calls, call)
  const startedMillis = port.system.monotonicMillis()
  const outcome = await port.pool.invoke(prepared.release, call, host)
  if (outcome.kind === 'misspeculated') onMisspeculation(invocation, outcome.cause)
  else {
    noteNamed(invocation, transaction)
    if (outcome.kind === 'returned' && invocation.placeholders !== null) {
      policies?.placeholders.onReturn(invocation.placeholders)
    }
  }
  if (outcome.kind === 'returned' || outcome.kind === 'failed') {
    if (calls.reads !== null) policies?.reads.observe(invocation.argumentsText, calls.reads)
    if (transaction.hasUnreadRanges) policies?.reads.onUnread()
  }
  port.usage.record(invocation, outcome, { startedMillis, grownBytes: host.grownBytes })
  log.end(outcome)
  const { limit } = transaction
  if (limit !== null) throw new Fault('LIMIT_EXCEEDED', { detail: limit })
  if (outcome.kind === 'threw' && transaction.hasRejectedCursor) {
    throw new Fault('ARGUMENTS_INVALID', { detail: outcome.error.message })
  }
  return { outcome, calls }
}

/** Notes whether a speculative call has read any of the documents that its arguments name. */
function noteNamed(
  { prepared, definition, argumentsText, isSpeculative }: Invocation,
  { readSet }: Transaction,
): void {
  const named = isSpeculative ? namedDocuments(argumentsText) : []
  if (named.length === 0) return
  const hasRead = named.some((id) => readSet.documents.has(id))
  prepared.functions.get(definition.name)!.speculation.noteNamed(hasRead)
}

/** Prepares the invocation for its next attempt, and the policies for those after it. */
function onMisspeculation(invocation: Invocation, cause: MisspeculationCause): void {
  const { prepared, definition } = invocation
  const { speculation, placeholders } = prepared.functions.get(definition.name)!
  if (cause === 'failed') {
    invocation.isSpeculative = false
    speculation.onMisspeculation()
  } else if (cause === 'read') placeholders.onRead()
  else prepared.placeholders.areUsed = false
  invocation.placeholders = null
}

/** Most log lines of called Functions that a speculative attempt buffers. */
const BUFFERED_LINES_MAX = 1_024

/**
 * The log of one attempt. A speculative attempt buffers the records of called Functions and drops
 * them where it is misspeculated, since the repeated attempt writes all of them.
 */
class AttemptLog {
  readonly #log: Logger
  readonly #invocation: Invocation
  readonly #isBuffered: boolean
  #buffer: (() => void)[] | null = null
  #lines = 0

  constructor(log: Logger, invocation: Invocation) {
    this.#log = log
    this.#invocation = invocation
    this.#isBuffered = invocation.isSpeculative
  }

  /** Logs the outcome of a called Function. */
  add(callee: FunctionManifest, outcome: RunnerOutcome): void {
    const logged = outcome.kind === 'returned' ? { ...outcome, result: null } : outcome
    this.#buffer ??= []
    this.#buffer.push(() => logOutcome(this.#log, this.#invocation, callee, logged))
    this.#lines += 'logs' in outcome ? (outcome.logs?.length ?? 0) : 0
    if (!this.#isBuffered || this.#lines > BUFFERED_LINES_MAX) this.#flush()
  }

  /** Logs the outcome of the attempt itself. */
  end(outcome: RunnerOutcome): void {
    if (outcome.kind === 'misspeculated') return
    this.#flush()
    logOutcome(this.#log, this.#invocation, this.#invocation.definition, outcome)
  }

  #flush(): void {
    for (const write of this.#buffer ?? []) write()
    this.#buffer = null
  }
}
