/**
 * Calls that wait for their Release to be prepared: no longer than they may take, nor once nobody
 * waits for them. The preparation goes on for whoever comes next: it may stand behind the commits
 * of a store that is stuck, which takes as long as it takes.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { ActiveCalls } from '../invocations/active-calls.ts'
import { cancelledFault } from '../invocations/invocations.ts'
import type { CancellationToken } from '../runners/outcomes.ts'
import type { Preparations } from './preparations.ts'
import type { PreparedRelease } from './prepared-release.ts'
import type { Release } from './release.ts'

/** As often as runners look whether a call should end. */
const TICK_MILLIS = 25

export interface AwaitedPreparationsPort {
  readonly preparations: Preparations
  readonly inFlight: ActiveCalls
  readonly system: Pick<System, 'monotonicMillis'>
}

export interface WaitOptions {
  /** Monotonic milliseconds. */
  readonly deadline: number
  readonly signal: CancellationToken | undefined
}

interface Waiting extends WaitOptions {
  readonly resolve: (prepared: PreparedRelease) => void
  readonly reject: (error: unknown) => void
}

export class AwaitedPreparations {
  readonly #port: AwaitedPreparationsPort
  /** Lists, since a promise would keep those that left it for as long as it hangs. */
  readonly #waiting = new Map<ReleaseId, Waiting[]>()

  constructor(port: AwaitedPreparationsPort) {
    this.#port = port
  }

  /**
   * Raises DEADLINE_EXCEEDED, UNAVAILABLE where nobody waits any more, and what the preparation
   * throws.
   */
  prepare(release: Release, { deadline, signal }: WaitOptions): Promise<PreparedRelease> {
    const { promise, resolve, reject } = Promise.withResolvers<PreparedRelease>()
    const one = { deadline, signal, resolve, reject }
    const waiting = this.#waiting.get(release.releaseId)
    if (waiting !== undefined) waiting.push(one)
    else void this.#begin(release, [one])
    return promise
  }

  async #begin(release: Release, waiting: Waiting[]): Promise<void> {
    const { preparations, inFlight } = this.#port
    this.#waiting.set(release.releaseId, waiting)
    // What it has found or built must stay until it ends, whoever waits for it by then.
    const end = inFlight.beginLate(release)
    const timer = setInterval(() => this.#tick(waiting), TICK_MILLIS)
    try {
      const prepared = await preparations.prepare(release)
      for (const { resolve } of waiting) resolve(prepared)
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    } finally {
      clearInterval(timer)
      this.#waiting.delete(release.releaseId)
      end()
    }
  }

  #tick(waiting: Waiting[]): void {
    const now = this.#port.system.monotonicMillis()
    for (const one of waiting.splice(0)) {
      if (now >= one.deadline) one.reject(new Fault('DEADLINE_EXCEEDED'))
      else if (one.signal?.aborted === true) one.reject(cancelledFault())
      else waiting.push(one)
    }
  }
}
