/**
 * The server's side of one runner: calls in flight, their operations and their outcomes. Each
 * message of the process is checked against the state of its calls. A violation terminates the
 * process.
 */
import type { StoredDocument } from '../../documents/store.ts'
import type { RunnerExit, RunnerProcess } from '../../runner/processes.ts'
import {
  type FromRunner,
  LOADING,
  type MisspeculationCause,
  NAMED_DOCUMENTS_MAX,
} from '../../runner/protocol/messages.ts'
import type { Operation } from '../../runner/protocol/operations.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { OperationError } from '../calls/operation-error.ts'
import {
  type DescribeOutcome,
  type InvokePart,
  type LoadFailure,
  noParts,
  type OperationResult,
  type OutcomeMessage,
  outcomeOf,
  type RunnerCall,
  type RunnerFate,
  type RunnerHost,
  type RunnerOutcome,
} from '../calls/outcomes.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'
import {
  type Cancelled,
  CancelledCalls,
  DeferredOperations,
  type InFlight,
  inFlight,
} from './active-runner-calls.ts'
import { type LimitExcess, RunnerWatch } from './limits-watch.ts'
import type { Attribution, Hello, RunnerOwner, RunnerPorts, RunnerRole } from './ports.ts'
import { SentDocuments } from './sent-documents.ts'
import { RunnerStart } from './starts.ts'

export class Runner {
  readonly process: RunnerProcess
  readonly watch: RunnerWatch
  owner: RunnerOwner | null = null
  readonly #ports: RunnerPorts
  readonly #calls = new TransientMap<number, InFlight>()
  readonly #descriptions = new Map<number, (outcome: DescribeOutcome) => void>()
  readonly #cancelled = new CancelledCalls()
  readonly #deferred = new DeferredOperations()
  readonly #sent: SentDocuments
  readonly #start: RunnerStart
  #lastCall = 0
  /** Most root calls in flight since the last `takeMostCalls`. */
  #mostCalls = 0
  /** The last call before the process returned memory. */
  #trimmedAfter = -1
  #flushing = false
  #ended = false
  #killed = false
  #isStopped = false
  #hasSentPlaceholders = false

  constructor(ports: RunnerPorts, flags: readonly string[] = []) {
    this.#ports = ports
    this.#sent = new SentDocuments(ports.limits.sentCharacters)
    this.#start = new RunnerStart(ports.system.monotonicMillis() + ports.limits.startMillis)
    this.process = ports.spawn(
      {
        onMessage: (message, characters) => this.#onMessage(message, characters),
        onMalformed: (reason) => this.#breach(reason),
        onErrorOutput: (line) => ports.log.warn('runner.output', { message: line }),
        onExit: (exit) => this.#onExit(exit),
      },
      flags,
    )
    this.watch = new RunnerWatch(this.process, ports.limits)
  }

  /** Resolves with null if the runner ended before its hello. */
  get hello(): Promise<Hello | null> {
    return this.#start.hello
  }

  get inFlight(): number {
    return this.#calls.size + this.#descriptions.size
  }

  get isEnded(): boolean {
    return this.#ended
  }

  /** Returns whether a kill from outside has ended it. */
  get isKilled(): boolean {
    return this.#killed
  }

  /** Returns whether its cancelled calls reach the bound: it should be replaced when idle. */
  get isWorn(): boolean {
    return this.#cancelled.isFull
  }

  /** Loads a Release. Resolves with null, or with the failure, after which the runner has ended. */
  load(code: ReleaseCode, role: RunnerRole): Promise<LoadFailure | null> {
    if (this.#ended) return Promise.resolve({ kind: 'lost' })
    const { limits, system } = this.#ports
    const actions = role === 'actions'
    const cpuMillis = actions ? limits.actionCpuMillis : limits.callCpuMillis
    this.watch.callCpuMillis = cpuMillis
    const { resultBytes, fixedClock } = limits
    this.process.load(code.source, { cpuMillis, resultBytes, actions, fixedClock })
    this.process.flush()
    return this.#start.load(system.monotonicMillis() + limits.startMillis)
  }

  describe(): Promise<DescribeOutcome> {
    const { promise, resolve } = Promise.withResolvers<DescribeOutcome>()
    if (this.#ended) return Promise.resolve({ kind: 'lost' })
    const id = ++this.#lastCall
    this.#descriptions.set(id, resolve)
    this.process.describe(id)
    this.#scheduleFlush()
    return promise
  }

  /** Invokes a Function. `parent` is the call of the Function that calls it. */
  invoke(
    call: RunnerCall,
    host: RunnerHost,
    parent: InFlight | null = null,
  ): Promise<RunnerOutcome> {
    const hasParentEnded = parent !== null && !this.#calls.has(parent.id)
    if (this.#ended || hasParentEnded) return Promise.resolve({ kind: 'lost' })
    const { promise, resolve: end, reject: abort } = Promise.withResolvers<RunnerOutcome>()
    const id = ++this.#lastCall
    if (parent !== null) parent.hasParts = true
    this.#calls.set(id, inFlight(id, parent, call, { host, end, abort }))
    if (parent === null) this.#mostCalls = Math.max(this.#mostCalls, this.#calls.size)
    const prefetched = call.prefetched === undefined ? null : this.#prefetchedItems(call)
    const pages = call.prefetchedPages
    this.process.invoke(id, call, { root: parent?.root ?? 0, prefetched, pages })
    this.#trimSent()
    this.#scheduleFlush()
    return promise
  }

  #prefetchedItems({ prefetched = [], placeholders }: RunnerCall): string {
    if (placeholders !== true) return this.#sent.items(prefetched)
    this.#hasSentPlaceholders ||= prefetched.length > 0
    return prefetched.map(({ id }) => `"${id}"`).join()
  }

  /** Returns how many calls were in flight together at most since it was called before. */
  takeMostCalls(): number {
    const most = this.#mostCalls
    let roots = 0
    for (const { parent } of this.#calls.values()) if (parent === 0) roots += 1
    this.#mostCalls = roots
    return most
  }

  /** Enforces the limits of time and memory. Called some 40 times a second. */
  tick(): void {
    if (this.#ended) return
    const now = this.#ports.system.monotonicMillis()
    const isWorking = this.#start.isAwaited || this.inFlight > 0 || this.watch.isBusy
    this.#checkProcess(now, isWorking)
    if (this.#ended || !isWorking) return
    for (const call of this.#calls.values()) {
      if (now >= call.deadline) this.#cancel(call, { kind: 'deadline' })
      else if (call.signal?.aborted === true) this.#cancel(call, { kind: 'cancelled' })
    }
    if (this.#start.isStalled(now)) {
      this.#die(LOADING, { kind: 'broken', detail: 'no hello or load in time' })
      return
    }
    const excess = this.watch.checkLimits(now)
    this.watch.noteGrowth(this.#calls)
    if (excess !== null) this.#terminate(excess)
    else if (!this.#deferred.isEmpty) this.#resume()
  }

  /**
   * Lets the process return memory, once after each use and only without calls in flight.
   * `withDocuments`: it forgets the documents that it caches.
   */
  trim(withDocuments: boolean): void {
    if (this.#ended || this.inFlight > 0) return
    const first = withDocuments ? this.#sent.clear() : null
    if (first !== null) this.process.forget(first)
    else if (this.#trimmedAfter === this.#lastCall) return
    this.#trimmedAfter = this.#lastCall
    this.process.trim()
    this.#scheduleFlush()
  }

  /** Terminates the process. Calls in flight are lost. */
  stop(): void {
    this.#isStopped = true
    this.#die(0, { kind: 'broken', detail: 'stopped' })
  }

  #onMessage(message: FromRunner, characters: number): void {
    if (this.#ended) return
    const { type } = message
    if (type === 'operation') {
      this.#onOperations(message.call, message.id, [message.op], characters)
    } else if (type === 'pipelined') this.#onOperations(message.call, null, message.ops, characters)
    else if (type === 'hello') {
      if (!this.#start.greet(message)) this.#breach('it sent a second hello')
    } else if (type === 'loaded') this.#onLoaded(null)
    else if (type === 'loadFailed') this.#onLoaded({ kind: 'threw', error: message.error })
    else if (type === 'description') this.#onDescription(message.call, message.description)
    else this.#onOutcome(message, characters)
  }

  #onDescription(id: number, description: unknown): void {
    const resolve = this.#descriptions.get(id)
    if (resolve === undefined) this.#breach('it sent a description that was not requested')
    this.#descriptions.delete(id)
    resolve?.({ kind: 'described', description })
    this.owner?.onRoom()
  }

  #onLoaded(failure: LoadFailure | null): void {
    if (!this.#start.loaded(failure)) this.#breach('it reported a load that was not requested')
    if (failure === null) this.watch.markLoaded()
    else this.stop()
  }

  #onOutcome(message: OutcomeMessage, characters: number): void {
    const { pipelined } = message
    if (pipelined.length > 0) this.#onOperations(message.call, null, pipelined, characters)
    const call = this.#calls.get(message.call)
    if (call === undefined) {
      if (!this.#cancelled.end(message.call)) this.#breach('it ended an unknown call')
      return
    }
    if (call.receivedOutcome !== null) this.#breach('it ended a call twice')
    else if (message.type === 'misspeculated' && !this.#mayMisspeculate(call, message.cause)) {
      this.#breach('it reported a call as misspeculated that cannot be')
    } else if (message.type === 'misspeculated' && message.cause === 'kept') this.#onKept(call)
    else if (call.pendingOperations > 0) call.receivedOutcome = message
    else this.#conclude(call, outcomeOf(message, call.documents))
  }

  #mayMisspeculate(call: InFlight, cause: MisspeculationCause): boolean {
    if (cause === 'kept') return this.#hasSentPlaceholders
    return cause === 'read' ? call.hasPlaceholders : call.isSpeculative
  }

  /**
   * Ends the process whose code looked into a placeholder of an earlier call, since it has kept the
   * placeholder. The root call learns of it first, so that no other one receives placeholders.
   */
  #onKept({ root }: InFlight): void {
    const call = this.#calls.get(root)
    this.#calls.delete(root)
    call?.end({ kind: 'misspeculated', cause: 'kept' })
    this.stop()
  }

  #conclude(call: InFlight, outcome: RunnerOutcome): void {
    this.#calls.delete(call.id)
    this.#endParts(call)
    call.end(outcome)
    this.owner?.onRoom()
  }

  /** Cancels called Functions that a call did not wait for. */
  #endParts({ id, hasParts }: InFlight): void {
    if (!hasParts) return
    for (const call of this.#calls.values()) {
      if (call.parent === id) this.#cancel(call, { kind: 'lost' })
    }
  }

  /** `id` is null for pipelined operations. `characters` is their total. */
  #onOperations(
    callId: number,
    id: number | null,
    ops: readonly Operation[],
    characters: number,
  ): void {
    const call = this.#calls.get(callId)
    if (call === undefined) {
      if (!this.#cancelled.has(callId)) this.#breach('it sent an operation of an unknown call')
      return
    }
    if (call.receivedOutcome !== null || (id === null && !call.isSpeculative)) {
      this.#breach('it sent an operation after the outcome, or pipelined one synchronously')
      return
    }
    const { limits } = this.#ports
    call.operations += ops.length
    if (call.operations > limits.operations) {
      this.#cancel(call, { kind: 'limit', limit: 'operations' })
      return
    }
    if (id === null) call.pendingOperations += ops.length
    // A runner that does not read its replies must not fill the server's memory with them.
    const defers = !this.#deferred.isEmpty || this.process.backlogBytes > limits.backlogBytes
    for (const op of ops) {
      if (defers) this.#deferred.push({ call, id, op, characters: characters / ops.length })
      else if (this.#calls.has(callId)) this.#perform(call, id, op)
    }
    if (this.#deferred.characters > limits.deferredCharacters) this.#breach('it reads no replies')
  }

  #resume(): void {
    while (this.process.backlogBytes <= this.#ports.limits.backlogBytes) {
      const next = this.#deferred.take()
      if (next === null) return
      if (this.#calls.has(next.call.id)) this.#perform(next.call, next.id, next.op)
    }
  }

  #perform(call: InFlight, id: number | null, op: Operation): void {
    try {
      const invokePart: InvokePart =
        op[0] === 'run' ? (part, host) => this.invoke(part, host, call) : noParts
      const result = call.host.operation(op, invokePart)
      if (result instanceof Promise) this.#replyLater(call, id, op, result)
      else this.#reply(call, id, result)
    } catch (error) {
      this.#rejectOperation(call, id, op, error)
    }
  }

  #replyLater(call: InFlight, id: number | null, op: Operation, result: Promise<OperationResult>) {
    result.then(
      (value) => this.#reply(call, id, value),
      (error: unknown) => this.#rejectOperation(call, id, op, error),
    )
  }

  #reply(call: InFlight, id: number | null, result: OperationResult): void {
    if (!this.#calls.has(call.id)) return
    if (id === null) {
      const pending = --call.pendingOperations
      const { receivedOutcome: outcome, documents } = call
      if (pending === 0 && outcome !== null) this.#conclude(call, outcomeOf(outcome, documents))
      return
    }
    if (typeof result === 'string') this.process.reply(call.id, id, result)
    else {
      const { documents, page } = result
      const items = this.#items(call, documents)
      for (const document of documents) call.documents.push(document)
      this.process.documents(call.id, id, { items, page })
      this.#trimSent()
    }
    this.#scheduleFlush()
  }

  /** A placeholder must be one of the documents that the result can name. */
  #items(call: InFlight, documents: readonly StoredDocument[]): string {
    const count = call.documents.length + documents.length
    if (!call.hasPlaceholders || count > NAMED_DOCUMENTS_MAX) return this.#sent.items(documents)
    this.#hasSentPlaceholders ||= documents.length > 0
    return documents.map(() => '""').join()
  }

  #trimSent(): void {
    const first = this.#sent.trim()
    if (first !== null) this.process.forget(first)
  }

  /** Throws the error in the code. A speculative call supports that for `run` only. */
  #rejectOperation(call: InFlight, id: number | null, op: Operation, error: unknown): void {
    if (!this.#calls.has(call.id)) return
    if (error instanceof OperationError) {
      if (id === null || (call.isSpeculative && op[0] !== 'run'))
        this.#cancel(call, { kind: 'misspeculated', cause: 'failed' })
      else this.process.reject(call.id, id, error)
      this.#scheduleFlush()
      return
    }
    this.#forget(call)
    call.abort(error)
  }

  #cancel(call: InFlight, outcome: RunnerOutcome): void {
    this.#forget(call)
    call.end(outcome)
  }

  #forget(call: InFlight): void {
    this.#calls.delete(call.id)
    this.#endParts(call)
    if (call.receivedOutcome === null) {
      this.#cancelled.add(call)
      this.process.cancel(call.id)
      this.#scheduleFlush()
    }
    this.owner?.onRoom()
  }

  /** Flushes once for all frames of one turn of the event loop. */
  #scheduleFlush(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.process.flush()
    })
  }

  #terminate({ call, limit }: LimitExcess): void {
    const cancelled = this.#cancelled.get(call)?.rootFunction
    // The failure of a call in flight is logged with its Function elsewhere.
    const level = call === LOADING || cancelled !== undefined ? 'warn' : 'debug'
    const message = `A call exceeded its limit: ${limit}.`
    this.#ports.log[level]('runner.stopped', { message, function: cancelled })
    this.#die(call, { kind: 'limit', limit })
  }

  #checkProcess(now: number, isWorking: boolean): void {
    const fate = this.watch.checkProcess(now, isWorking)
    if (fate === null) return
    const limit = fate.kind === 'limit' ? fate.limit : fate.detail
    this.#ports.log.warn('runner.stopped', { message: `A runner exceeded its limit: ${limit}.` })
    this.#die(this.#responsibleCall(), fate)
  }

  #breach(reason: string): void {
    if (this.#ended) return
    const detail = `the runner broke its protocol: ${reason}`
    this.#ports.log.warn('runner.stopped', { message: `A runner broke its protocol: ${reason}.` })
    this.#die(this.#responsibleCall(), { kind: 'broken', detail })
  }

  /** Returns the only root call in flight, otherwise the call that was executing. */
  #responsibleCall(): number {
    const inFlight = [...this.#calls.values()].map(({ root }) => root)
    const [only, another] = new Set([...this.#descriptions.keys(), ...inFlight])
    return only !== undefined && another === undefined ? only : this.watch.current()
  }

  #onExit({ signal, code, residentBytesMax }: RunnerExit): void {
    if (this.#ended) return
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`
    this.#ports.log.warn('runner.stopped', { message: `A runner ended unexpectedly: ${how}.` })
    const fate: RunnerFate = this.watch.diedOfMemory(residentBytesMax)
      ? { kind: 'limit', limit: 'memory' }
      : { kind: 'broken', detail: `the runner ended with ${how}` }
    // Code in the runner cannot send SIGKILL, so the calls and the load are retried.
    this.#killed = signal === 'SIGKILL'
    if (this.#killed) this.#start.end({ kind: 'lost' })
    this.#die(this.#killed ? 0 : this.watch.current(), fate)
  }

  #die(responsible: number, fate: RunnerFate): void {
    if (this.#ended) return
    this.#ended = true
    // The root call is responsible for the Functions that it called.
    const known = this.#calls.get(responsible) ?? this.#cancelled.get(responsible)
    const root = known?.root ?? responsible
    this.process.kill()
    this.#start.end(fate)
    for (const [id, resolve] of this.#descriptions) resolve(id === root ? fate : { kind: 'lost' })
    // Called before the outcomes, so that the group is prepared for calls that run again.
    this.#ports.onEnd(this.#isStopped ? null : fate)
    this.owner?.onEnd(this.#attribution(known))
    this.owner = null
    for (const [id, call] of this.#calls) call.end(id === root ? fate : { kind: 'lost' })
    this.#calls.clear()
  }

  #attribution(known: Cancelled | undefined): Attribution {
    if (this.#isStopped) return 'none'
    if (known !== undefined) return { function: known.rootFunction }
    return this.inFlight === 0 ? 'none' : 'unknown'
  }
}
