/** The runners of one Release: which of them takes the next call, and when one more is started. */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { ReleaseCode } from '../releases/executable-release.ts'
import type {
  CancellationToken,
  DescribeOutcome,
  LoadFailure,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from './outcomes.ts'
import type { Attribution, RunnerOwner, RunnerRole } from './ports.ts'
import type { Runner } from './runner.ts'

export interface GroupLimits {
  /** Runners of one Release. */
  readonly runners: number
  /** Calls in flight in one runner. */
  readonly callsPerRunner: number
  /** Calls that may wait for a runner. */
  readonly waiting: number
  /** Bytes that a runner may have grown by before another takes its place. */
  readonly keptGrowthBytes: number
  /**
   * Milliseconds during which each runner takes one call at a time, after one ended and nobody
   * could tell through which call: run again alone, the call at fault is told from the others.
   * And those during which a Function runs apart from the others, after a call of it ended one.
   */
  readonly isolationMillis: number
  /**
   * Milliseconds before another runner is started after one did not come to hold the Release;
   * doubled with each further one, up to `restartMillisMax`.
   */
  readonly restartMillis: number
  readonly restartMillisMax: number
}

/** Answers a process that has greeted and holds no Release yet; null where none can be started. */
export type TakeRunner = () => Promise<Runner | null>

export interface GroupPorts {
  readonly role: RunnerRole
  readonly take: TakeRunner
  readonly limits: GroupLimits
  readonly system: Pick<System, 'monotonicMillis'>
  /** Told of a Function through which a runner ended, where that is not for the group itself. */
  readonly onCulprit?: (name: string) => void
}

interface Waiting {
  readonly deadline: number
  readonly signal: CancellationToken | undefined
  readonly go: (runner: Runner) => void
  /** Null where no runner will come. */
  readonly fail: (why: LoadFailure | null) => void
}

export class RunnerGroup implements RunnerOwner {
  /** Monotonic milliseconds; the pool stops the group that was used longest ago. */
  usedAtMillis = 0
  readonly #code: ReleaseCode
  readonly #ports: GroupPorts
  readonly #limits: GroupLimits
  readonly #ready: Runner[] = []
  /** Grown too large: they finish what they have. */
  readonly #leaving = new Set<Runner>()
  readonly #waiting: Waiting[] = []
  #starting = 0
  #closed = false
  /** Starts that failed, one after the other, and why the last one did. */
  #failures = 0
  #failure: LoadFailure | null = null
  /** Monotonic milliseconds before which no runner is started. */
  #restartAt = 0
  /** Monotonic milliseconds. */
  #isolatedUntil = 0
  /** Functions through which a runner ended, and until when they run apart (the same). */
  readonly #suspects = new Map<string, number>()
  /** Of their calls, one in a runner: each would take those beside it with it, again and again. */
  #apart: RunnerGroup | null = null

  constructor(code: ReleaseCode, ports: GroupPorts) {
    this.#code = code
    this.#ports = ports
    this.#limits = ports.limits
  }

  get size(): number {
    return this.#ownSize + (this.#apart?.size ?? 0)
  }

  get #ownSize(): number {
    return this.#ready.length + this.#leaving.size + this.#starting
  }

  get isReady(): boolean {
    return this.#ready.length > 0
  }

  get inFlight(): number {
    const apart = this.#apart?.inFlight ?? 0
    const waiting = this.#waiting.length
    return this.#runners().reduce((sum, runner) => sum + runner.inFlight, waiting + apart)
  }

  /** Bytes that its runners have not taken yet. */
  get backlogBytes(): number {
    const apart = this.#apart?.backlogBytes ?? 0
    return this.#runners().reduce((sum, { process }) => sum + process.backlogBytes, apart)
  }

  invoke(call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
    const apart = this.#apart
    if (apart !== null && this.#suspects.has(call.function)) return apart.invoke(call, host)
    const runner = this.#idlest()
    return runner !== null ? runner.invoke(call, host) : this.#invokeLater(call, host)
  }

  #invokeLater(call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
    const failed = (why: LoadFailure): RunnerOutcome =>
      why.kind === 'threw' ? { ...why, ...NO_USAGE } : why
    return this.#through(call, (runner) => runner.invoke(call, host), failed)
  }

  describe(deadline: number): Promise<DescribeOutcome> {
    return this.#through(
      { deadline },
      (runner) => runner.describe(),
      (why) => why,
    )
  }

  /** Null once a runner is ready. */
  warm(deadline: number): Promise<LoadFailure | null> {
    return this.#through<LoadFailure | null>(
      { deadline },
      async () => null,
      (why) => why,
    )
  }

  onRoom(runner: Runner): void {
    if (this.#waiting.length > 0) this.#serveWaiting()
    if (this.#leaving.has(runner)) {
      if (runner.inFlight === 0) runner.stop()
    } else if (runner.isWorn || runner.watch.grownBytes > this.#limits.keptGrowthBytes) {
      this.#replace(runner)
    }
  }

  onEnd(runner: Runner, blame: Attribution): void {
    const { system, limits, onCulprit = this.#suspect } = this.#ports
    if (blame === 'unknown') this.#isolate(system.monotonicMillis() + limits.isolationMillis)
    else if (blame !== 'nobody') onCulprit(blame.function)
    this.#leaving.delete(runner)
    const at = this.#ready.indexOf(runner)
    if (at === -1) return
    this.#ready.splice(at, 1)
    // The next one is prepared at once, before a call has to wait for it.
    this.#startFirst()
  }

  /** Grows where a CPU is the bottleneck, and ends waits that took too long. */
  tick(nowMillis: number): void {
    if (this.#ready.some(isPressed)) this.#grow()
    if (this.#waiting.length > 0) this.#startFirst()
    // What isolation held back waits for no other call to end: one may wait for it.
    this.#serveWaiting()
    for (const waiting of this.#waiting.splice(0)) {
      if (nowMillis >= waiting.deadline) waiting.fail({ kind: 'deadline' })
      else if (waiting.signal?.aborted === true) waiting.fail({ kind: 'cancelled' })
      else this.#waiting.push(waiting)
    }
    if (this.#apart !== null) this.#tickApart(this.#apart, nowMillis)
  }

  close(): void {
    this.#closed = true
    this.#apart?.close()
    for (const runner of this.#runners()) runner.stop()
    this.#failWaiting(null)
  }

  readonly #suspect = (name: string): void => {
    const { system, limits } = this.#ports
    this.#suspects.set(name, system.monotonicMillis() + limits.isolationMillis)
    this.#apart ??= new RunnerGroup(this.#code, {
      ...this.#ports,
      limits: { ...limits, runners: Math.ceil(limits.runners / 2) },
      onCulprit: this.#suspect,
    })
    this.#apart.#isolate(Number.POSITIVE_INFINITY)
  }

  #isolate(until: number): void {
    this.#isolatedUntil = Math.max(this.#isolatedUntil, until)
  }

  #tickApart(apart: RunnerGroup, nowMillis: number): void {
    for (const [name, until] of this.#suspects) {
      if (nowMillis >= until) this.#suspects.delete(name)
    }
    // Those that are left end like all others: new calls would overtake them.
    if (this.#suspects.size === 0) apart.#isolatedUntil = 0
    apart.tick(nowMillis)
    if (this.#suspects.size > 0 || apart.inFlight > 0) return
    apart.close()
    this.#apart = null
  }

  #runners(): Runner[] {
    return [...this.#ready, ...this.#leaving]
  }

  #through<T>(
    { deadline, signal }: Pick<RunnerCall, 'deadline' | 'signal'>,
    go: (runner: Runner) => Promise<T>,
    failed: (why: LoadFailure) => T,
  ): Promise<T> {
    const runner = this.#idlest()
    if (runner !== null) return go(runner)
    if (this.#closed) return Promise.reject(new Fault('UNAVAILABLE'))
    if (this.#waiting.length >= this.#limits.waiting) return Promise.reject(new Fault('BUSY'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        deadline,
        signal,
        go: (found) => resolve(go(found)),
        fail: (why) =>
          why === null
            ? reject(new Fault('UNAVAILABLE', { detail: 'no runner could be started' }))
            : resolve(failed(why)),
      })
      if (this.#ready.length > 0) return
      this.#startFirst()
      if (this.#starting === 0) this.#failStarts()
    })
  }

  /** Where none takes calls or will: one that leaves does not, however long its last call takes. */
  #startFirst(): void {
    const isServed = this.#ready.length + this.#starting > 0
    if (!isServed && this.#mayStart) this.#start()
  }

  /** Code that does not load, or a system that starts no process, is not tried for every call. */
  get #mayStart(): boolean {
    return this.#ports.system.monotonicMillis() >= this.#restartAt
  }

  /** Of those that have room; null where every runner is full or none is ready. */
  #idlest(): Runner | null {
    const { callsPerRunner } = this.#limits
    const most = this.#ports.system.monotonicMillis() < this.#isolatedUntil ? 1 : callsPerRunner
    let best: Runner | null = null
    for (const runner of this.#ready) {
      if (runner.inFlight < most && (best === null || load(runner) < load(best))) best = runner
    }
    if (best === null && this.#ready.length > 0) this.#grow()
    return best
  }

  #grow(): void {
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
      runner.owner = this
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

  /** Where somebody stopped it, that says nothing of the code: calls wait for the next one. */
  #failStarts(): void {
    if (this.#failure?.kind !== 'lost') this.#failWaiting(this.#failure)
  }

  /** Another one takes over before it leaves, so that no call waits for that. */
  #replace(runner: Runner): void {
    if (this.#ready.length === 1) {
      if (this.#starting === 0 && this.#mayStart) this.#start()
      return
    }
    this.#ready.splice(this.#ready.indexOf(runner), 1)
    this.#leaving.add(runner)
    if (runner.inFlight === 0) runner.stop()
  }

  #serveWaiting(): void {
    while (this.#waiting.length > 0) {
      const runner = this.#idlest()
      if (runner === null) return
      this.#waiting.shift()!.go(runner)
    }
  }

  #failWaiting(why: LoadFailure | null): void {
    for (const waiting of this.#waiting.splice(0)) waiting.fail(why)
  }
}

/** One that a call keeps busy comes last, however few it has. */
function load(runner: Runner): number {
  return runner.inFlight + (runner.watch.isBusy ? 1_000 : 0)
}

/** Of one CPU. Below that a second runner would only cost the server smaller batches. */
const PRESSED_SHARE = 0.7

/** Whether one call holds up others, or all of them together are more than one CPU does. */
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
