/** The runners of one Release: assigns calls to them and starts more under load. */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type {
  CancellationToken,
  DescribeOutcome,
  LoadFailure,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from '../calls/outcomes.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'
import type { Attribution, RunnerRole } from './ports.ts'
import type { Runner } from './runner.ts'

export interface GroupLimits {
  /** Most runners of one Release. */
  readonly runners: number
  /** Most calls in flight in one runner. */
  readonly callsPerRunner: number
  /** Most calls that wait for a runner. */
  readonly waiting: number
  /** Growth in bytes beyond which a runner is replaced. */
  readonly keptGrowthBytes: number
  /** Milliseconds without a shortage of runners after which a group stops all but one. */
  readonly surplusMillis: number
  /**
   * Milliseconds during which each runner takes one call at a time after a runner failure of
   * unknown cause, so that the responsible call is identified when the calls run again. Also the
   * milliseconds during which a Function runs in runners of its own after it crashed one.
   */
  readonly isolationMillis: number
  /**
   * Milliseconds until the next start after a runner failed to load the Release; doubled with each
   * further failure, up to `restartMillisMax`.
   */
  readonly restartMillis: number
  readonly restartMillisMax: number
}

/** Returns a started runner without a Release; null if none can be started. */
export type TakeRunner = () => Promise<Runner | null>

export interface GroupPorts {
  readonly role: RunnerRole
  readonly take: TakeRunner
  readonly limits: GroupLimits
  readonly system: Pick<System, 'monotonicMillis'>
  /**
   * Called with a Function that crashed a runner, in place of the group's own quarantine. Present
   * in the group of quarantined Functions.
   */
  readonly onResponsible?: (name: string) => void
}

interface Waiting {
  readonly deadline: number
  readonly startByMillis: number | undefined
  readonly signal: CancellationToken | undefined
  readonly run: (runner: Runner) => void
  /** Null where no runner can be started. */
  readonly fail: (failure: LoadFailure | null) => void
  readonly reject: (fault: Fault) => void
}

export class RunnerGroup {
  /** Monotonic milliseconds of the last use; the pool stops the least recently used group. */
  usedAtMillis = 0
  /** Monotonic milliseconds until which its runners stay although nothing serves the Release. */
  keptUntilMillis = 0
  readonly #code: ReleaseCode
  readonly #ports: GroupPorts
  readonly #limits: GroupLimits
  readonly #ready: Runner[] = []
  /** Runners that have grown too large: they drain their calls and stop. */
  readonly #draining = new Set<Runner>()
  readonly #waiting: Waiting[] = []
  #starting = 0
  #closed = false
  /** Number of consecutive failed starts. */
  #failures = 0
  /** The reason why the last start failed. */
  #failure: LoadFailure | null = null
  /** Monotonic milliseconds before which no runner is started. */
  #restartAt = 0
  /** Monotonic milliseconds when its runners were last too few for its calls. */
  #shortAt = 0
  /** Monotonic milliseconds. */
  #isolatedUntil = 0
  /** Quarantined Functions, which crashed a runner, with the end in monotonic milliseconds. */
  readonly #suspects = new Map<string, number>()
  /**
   * Runs the calls of quarantined Functions, one in each runner: each of them may crash its runner
   * again, which must not affect other calls.
   */
  #quarantine: RunnerGroup | null = null

  constructor(code: ReleaseCode, ports: GroupPorts) {
    this.#code = code
    this.#ports = ports
    this.#limits = ports.limits
  }

  get size(): number {
    return this.#ownSize + (this.#quarantine?.size ?? 0)
  }

  get #ownSize(): number {
    return this.#ready.length + this.#draining.size + this.#starting
  }

  get isReady(): boolean {
    return this.#ready.length > 0
  }

  get isStarting(): boolean {
    return this.#starting > 0
  }

  get inFlight(): number {
    const quarantined = this.#quarantine?.inFlight ?? 0
    const waiting = this.#waiting.length
    return this.#runners().reduce((sum, runner) => sum + runner.inFlight, waiting + quarantined)
  }

  /** Bytes that its runners have not read yet. */
  get backlogBytes(): number {
    const quarantined = this.#quarantine?.backlogBytes ?? 0
    return this.#runners().reduce((sum, { process }) => sum + process.backlogBytes, quarantined)
  }

  invoke(call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
    const quarantine = this.#quarantine
    if (quarantine !== null && this.#suspects.has(call.function))
      return quarantine.invoke(call, host)
    const runner = this.#idlest()
    return runner !== null ? runner.invoke(call, host) : this.#invokeLater(call, host)
  }

  #invokeLater(call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
    const failed = (failure: LoadFailure): RunnerOutcome =>
      failure.kind === 'threw' ? { ...failure, ...NO_USAGE } : failure
    return this.#through(call, (runner) => runner.invoke(call, host), failed)
  }

  describe(deadline: number): Promise<DescribeOutcome> {
    return this.#through(
      { deadline },
      (runner) => runner.describe(),
      (failure) => failure,
    )
  }

  /** Resolves with null once a runner is ready, or with the failure of the start. */
  warm(deadline: number): Promise<LoadFailure | null> {
    return this.#through<LoadFailure | null>(
      { deadline },
      async () => null,
      (failure) => failure,
    )
  }

  /** Handles the end of a call of a runner, which can take another one. */
  #onRoom(runner: Runner): void {
    if (this.#waiting.length > 0) this.#serveWaiting()
    if (this.#draining.has(runner)) {
      if (runner.inFlight === 0) runner.stop()
    } else if (runner.isWorn || runner.watch.grownBytes > this.#limits.keptGrowthBytes) {
      this.#replace(runner)
    }
  }

  /** Handles the end of a runner. */
  #onEnd(runner: Runner, attribution: Attribution): void {
    const { system, limits, onResponsible = this.#suspect } = this.#ports
    if (attribution === 'unknown') this.#isolate(system.monotonicMillis() + limits.isolationMillis)
    else if (attribution !== 'none') onResponsible(attribution.function)
    this.#draining.delete(runner)
    const index = this.#ready.indexOf(runner)
    if (index === -1) return
    this.#ready.splice(index, 1)
    // Starts the replacement at once, so that the next call need not wait for it.
    this.#startFirst()
  }

  /** Starts a runner where the CPU is the bottleneck, and ends waits at their deadlines. */
  tick(nowMillis: number): void {
    if (this.#ready.some(isPressed)) this.#grow(nowMillis)
    else if (nowMillis - this.#shortAt > this.#limits.surplusMillis) this.#shrink()
    if (this.#waiting.length > 0) this.#startFirst()
    // The end of isolation admits waiting calls before the running ones end, which may call them.
    this.#serveWaiting()
    for (const waiting of this.#waiting.splice(0)) {
      const { deadline, startByMillis = deadline } = waiting
      if (nowMillis >= deadline) waiting.fail({ kind: 'deadline' })
      else if (nowMillis >= startByMillis) waiting.reject(new Fault('BUSY', { detail: 'runners' }))
      else if (waiting.signal?.aborted === true) waiting.fail({ kind: 'cancelled' })
      else this.#waiting.push(waiting)
    }
    if (this.#quarantine !== null) this.#tickQuarantine(this.#quarantine, nowMillis)
  }

  /** `Runner.trim` */
  trim(withDocuments: boolean): void {
    this.#quarantine?.trim(withDocuments)
    for (const runner of this.#ready) runner.trim(withDocuments)
  }

  close(): void {
    this.#closed = true
    this.#quarantine?.close()
    for (const runner of this.#runners()) runner.stop()
    this.#failWaiting(null)
  }

  readonly #suspect = (name: string): void => {
    const { system, limits } = this.#ports
    this.#suspects.set(name, system.monotonicMillis() + limits.isolationMillis)
    this.#quarantine ??= new RunnerGroup(this.#code, {
      ...this.#ports,
      limits: { ...limits, runners: Math.ceil(limits.runners / 2) },
      onResponsible: this.#suspect,
    })
    this.#quarantine.#isolate(Number.POSITIVE_INFINITY)
  }

  #isolate(until: number): void {
    this.#isolatedUntil = Math.max(this.#isolatedUntil, until)
  }

  #tickQuarantine(quarantine: RunnerGroup, nowMillis: number): void {
    for (const [name, until] of this.#suspects) {
      if (nowMillis >= until) this.#suspects.delete(name)
    }
    // Those that are left end like all others: new calls would overtake them.
    if (this.#suspects.size === 0) quarantine.#isolatedUntil = 0
    quarantine.tick(nowMillis)
    if (this.#suspects.size > 0 || quarantine.inFlight > 0) return
    quarantine.close()
    this.#quarantine = null
  }

  #runners(): Runner[] {
    return [...this.#ready, ...this.#draining]
  }

  #through<T>(
    { startByMillis, deadline, signal }: Pick<RunnerCall, 'startByMillis' | 'deadline' | 'signal'>,
    run: (runner: Runner) => Promise<T>,
    failed: (failure: LoadFailure) => T,
  ): Promise<T> {
    const runner = this.#idlest()
    if (runner !== null) return run(runner)
    if (this.#closed) return Promise.reject(new Fault('UNAVAILABLE'))
    if (this.#waiting.length >= this.#limits.waiting) return Promise.reject(new Fault('BUSY'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        startByMillis,
        deadline,
        signal,
        run: (found) => resolve(run(found)),
        fail: (failure) =>
          failure === null
            ? reject(new Fault('UNAVAILABLE', { detail: 'no runner could be started' }))
            : resolve(failed(failure)),
        reject,
      })
      if (this.#ready.length > 0) return
      this.#startFirst()
      if (this.#starting === 0) this.#failStarts()
    })
  }

  /** Starts a runner where none is ready or starting; a draining one takes no calls. */
  #startFirst(): void {
    const isServed = this.#ready.length + this.#starting > 0
    if (!isServed && this.#mayStart) this.#start()
  }

  /** Returns whether the pause after the last failed start is over. */
  get #mayStart(): boolean {
    return this.#ports.system.monotonicMillis() >= this.#restartAt
  }

  /** Returns the runner with the lowest load; null if every runner is full or none is ready. */
  #idlest(): Runner | null {
    const { callsPerRunner } = this.#limits
    const now = this.#ports.system.monotonicMillis()
    const most = now < this.#isolatedUntil ? 1 : callsPerRunner
    let best: Runner | null = null
    for (const runner of this.#ready) {
      if (runner.inFlight < most && (best === null || load(runner) < load(best))) best = runner
    }
    if (best === null && this.#ready.length > 0) this.#grow(now)
    return best
  }

  #grow(nowMillis: number): void {
    this.#shortAt = nowMillis
    const fits = this.#starting === 0 && this.#ownSize < this.#limits.runners
    if (fits && this.#mayStart) this.#start()
  }

  #start(): void {
    if (this.#closed) return
    this.#starting += 1
    void this.#startOne().finally(() => {
      this.#starting -= 1
      this.#serveWaiting()
    })
  }

  async #startOne(): Promise<void> {
    const runner = await this.#ports.take()
    if (runner === null) {
      this.#onStartFailed(null)
      return
    }
    const failure = await runner.load(this.#code, this.#ports.role)
    if (this.#closed) runner.stop()
    else if (failure === null && !runner.isEnded) {
      this.#failures = 0
      runner.owner = {
        onRoom: () => this.#onRoom(runner),
        onEnd: (attribution) => this.#onEnd(runner, attribution),
      }
      this.#ready.push(runner)
    } else this.#onStartFailed(failure)
  }

  #onStartFailed(failure: LoadFailure | null): void {
    const { restartMillis, restartMillisMax } = this.#limits
    const pause = Math.min(restartMillis * 2 ** this.#failures, restartMillisMax)
    this.#failures += 1
    this.#failure = failure
    this.#restartAt = this.#ports.system.monotonicMillis() + pause
    if (this.#ready.length === 0) this.#failStarts()
  }

  /** Fails the waiting calls, unless the runner was killed from outside: then they keep waiting. */
  #failStarts(): void {
    if (this.#failure?.kind !== 'lost') this.#failWaiting(this.#failure)
  }

  /** Drains a runner once another one is ready, so that no call waits for the replacement. */
  #replace(runner: Runner): void {
    if (this.#ready.length === 1) {
      if (this.#starting === 0 && this.#mayStart) this.#start()
      return
    }
    this.#drain(runner)
  }

  /** Stops the runner that has grown most, where one runner would do for the calls. */
  #shrink(): void {
    if (this.#ready.length < 2) return
    const grown = (runner: Runner) => runner.watch.grownBytes
    this.#drain(this.#ready.reduce((one, other) => (grown(other) > grown(one) ? other : one)))
  }

  /** Gives the runner no further calls, and stops it once it has ended those that it has. */
  #drain(runner: Runner): void {
    this.#ready.splice(this.#ready.indexOf(runner), 1)
    this.#draining.add(runner)
    if (runner.inFlight === 0) runner.stop()
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const runner = this.#idlest()
      if (runner === null) return
      this.#waiting.shift()!.run(runner)
    }
  }

  #failWaiting(failure: LoadFailure | null): void {
    for (const waiting of this.#waiting.splice(0)) waiting.fail(failure)
  }
}

/** Returns the load of a runner. One that a call keeps busy ranks last, however few it has. */
function load(runner: Runner): number {
  return runner.inFlight + (runner.watch.isBusy ? 1_000 : 0)
}

/** Share of one CPU below which a second runner would only split batches of messages. */
const PRESSED_SHARE = 0.7

/** Returns whether one call delays others, or all of them together need more than one CPU. */
function isPressed({ watch, inFlight }: Runner): boolean {
  return inFlight > 1 && (watch.isBusy || watch.cpuShare > PRESSED_SHARE)
}

const NO_USAGE = {
  usedClock: false,
  usedRandom: false,
  usedIdentity: false,
  cpuMicros: 0,
  logs: [],
} as const
