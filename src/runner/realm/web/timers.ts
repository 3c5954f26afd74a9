/**
 * Timers of Actions. A runner waits for nothing but frames, so the server wakes it: one request for
 * the timer that is due first stands for all of them.
 */
import type { Call, Calls, makeEndings, makeOperations, Timer } from '../calls.ts'
import type { makeReport } from '../reports.ts'

/** Answers what sees to it that the timers of a call run when they are due. */
export function makeAlarm(
  operations: ReturnType<typeof makeOperations>,
  parts: {
    readonly endings: ReturnType<typeof makeEndings>
    readonly report: ReturnType<typeof makeReport>
    /** Milliseconds since the epoch. */
    readonly now: () => number
  },
): (call: Call) => void {
  const { endings, report, now } = parts

  function arm(call: Call): void {
    let first = Number.POSITIVE_INFINITY
    for (const { dueAt } of call.timers.values()) first = Math.min(first, dueAt)
    if (first >= call.wakeAt) return
    call.wakeAt = first
    const millis = Math.max(0, Math.ceil(first - now()))
    operations.leave(call, `["sleep",${millis}]`).then(
      () => wake(call, first),
      // Refused: the call has asked for too many, and its timers never run.
      (error) => endings.threw(call, report(error)),
    )
  }

  function wake(call: Call, at: number): void {
    if (call.wakeAt === at) call.wakeAt = Number.POSITIVE_INFINITY
    const time = Math.max(now(), at)
    const due = [...call.timers].filter(([, { dueAt }]) => dueAt <= time)
    due.sort(([, a], [, b]) => a.dueAt - b.dueAt)
    for (const [id, timer] of due) run(call, id, timer, time)
    if (!call.finished) arm(call)
  }

  function run(call: Call, id: number, timer: Timer, time: number): void {
    // An earlier one may have cleared it.
    if (call.finished || call.timers.get(id) !== timer) return
    if (timer.every === null) call.timers.delete(id)
    else timer.dueAt = time + timer.every
    try {
      timer.run()
    } catch (thrown) {
      endings.threw(call, report(thrown))
    }
  }

  return arm
}

export function makeTimers(
  calls: Calls,
  arm: ReturnType<typeof makeAlarm>,
  { now, timersMax }: { readonly now: () => number; readonly timersMax: number },
) {
  const millisMax = 2 ** 31 - 1
  let last = 0

  function start(name: string, repeats: boolean) {
    return (task: (...given: unknown[]) => unknown, delay?: unknown, ...given: unknown[]) => {
      const call = calls.running()
      if (call === null) throw new TypeError(`${name}: call it in a handler`)
      if (typeof task !== 'function') throw new TypeError(`${name} needs a function`)
      if (call.timers.size >= timersMax) throw new RangeError(`at most ${timersMax} timers`)
      const wanted = Number(delay)
      const millis = wanted > 0 && wanted <= millisMax ? wanted : repeats ? 1 : 0
      const id = ++last
      const dueAt = now() + millis
      call.timers.set(id, { dueAt, every: repeats ? millis : null, run: () => void task(...given) })
      arm(call)
      return id
    }
  }

  function clear(id?: unknown): void {
    calls.running()?.timers.delete(id as number)
  }

  return {
    setTimeout: start('setTimeout', false),
    setInterval: start('setInterval', true),
    clearTimeout: clear,
    clearInterval: clear,
  }
}
