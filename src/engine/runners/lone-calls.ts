/**
 * Places the runner of the only call in flight on the processor of this thread. The thread waits
 * while that runner works, so nothing is lost by sharing, and no other processor has to be woken.
 * The runner also does not wait behind a background thread of this process on that processor,
 * such as one that compiles code for 10 ms.
 */
import type { Runner } from './runner.ts'

/** Share of one CPU from which this thread leaves a runner beside it too little. */
const OWN_SHARE_MAX = 0.8
/** Share of one CPU from which a runner delays what else this thread has to do. */
const RUNNER_SHARE_MAX = 0.5

/** The part of a runner that its placement needs. */
export interface PlacedRunner extends Pick<Runner, 'takeMostCalls'> {
  readonly watch: Pick<Runner['watch'], 'cpuShare'>
  readonly process: Pick<Runner['process'], 'shareProcessor'>
}

function threadMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

export class LoneCalls {
  readonly #ownMicros: () => number
  #lastMicros: number
  #lastMillis = 0

  constructor(ownMicros: () => number = threadMicros) {
    this.#ownMicros = ownMicros
    this.#lastMicros = ownMicros()
  }

  /** Decides by the calls since the last tick. Without any, each runner stays where it is. */
  tick(runners: Iterable<PlacedRunner>, nowMillis: number): void {
    const ownShare = this.#ownShare(nowMillis)
    let calls = 0
    let last: PlacedRunner | null = null
    for (const runner of runners) {
      const most = runner.takeMostCalls()
      if (most > 0) last = runner
      calls += most
    }
    if (last === null) return
    const isShared =
      calls === 1 && ownShare < OWN_SHARE_MAX && last.watch.cpuShare < RUNNER_SHARE_MAX
    for (const runner of runners) runner.process.shareProcessor(isShared && runner === last)
  }

  #ownShare(nowMillis: number): number {
    const micros = this.#ownMicros()
    const share = (micros - this.#lastMicros) / 1000 / (nowMillis - this.#lastMillis)
    this.#lastMicros = micros
    this.#lastMillis = nowMillis
    return share
  }
}
