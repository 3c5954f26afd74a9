/**
 * Lets calls wait for the preparation of their Release until their deadline or cancellation. The
 * preparation itself continues for later calls: it may wait for commits of a stalled store, which
 * has no time bound.
 */
import { Fault } from '../../errors/fault.ts'
import type { System } from '../../system/system.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { CancellationToken } from '../calls/outcomes.ts'
import { cancelledFault } from '../invocations/run-outcomes.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'

/** Time between two checks of deadlines and tokens; runners check at the same interval. */
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

interface WaitingCall extends WaitOptions {
  readonly resolve: (prepared: PreparedRelease) => void
  readonly reject: (error: unknown) => void
}

export class AwaitedPreparations {
  readonly #port: AwaitedPreparationsPort
  /** Lists, since a shared promise would retain calls that ended until it settles. */
  readonly #waiting = new Map<ReleaseId, WaitingCall[]>()

  constructor(port: AwaitedPreparationsPort) {
    this.#port = port
  }

  /**
   * Rejects with DEADLINE_EXCEEDED, with UNAVAILABLE after a cancellation, and with the failure of
   * the preparation.
   */
  prepare(release: Release, { deadline, signal }: WaitOptions): Promise<PreparedRelease> {
    const { promise, resolve, reject } = Promise.withResolvers<PreparedRelease>()
    const call = { deadline, signal, resolve, reject }
    const waiting = this.#waiting.get(release.releaseId)
    if (waiting !== undefined) waiting.push(call)
    else void this.#start(release, [call])
    return promise
  }

  async #start(release: Release, waiting: WaitingCall[]): Promise<void> {
    const { preparations, inFlight } = this.#port
    this.#waiting.set(release.releaseId, waiting)
    // The Release is retained until the preparation ends, even if no call waits for it by then.
    const end = inFlight.beginDetached(release)
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

  #tick(waiting: WaitingCall[]): void {
    const now = this.#port.system.monotonicMillis()
    for (const call of waiting.splice(0)) {
      if (now >= call.deadline) call.reject(new Fault('DEADLINE_EXCEEDED'))
      else if (call.signal?.aborted === true) call.reject(cancelledFault())
      else waiting.push(call)
    }
  }
}
