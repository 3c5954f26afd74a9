/**
 * Timers of Actions. A runner waits for nothing but frames, so the server wakes it: one request for
 * the timer that is due first stands for all of them.
 */
import type { Call, Calls, makeEndings, makeOperations, Timer } from '../calls.ts'
import type { makeReport } from '../reports.ts'

/** Answers what sees to it that the timers of a call run that are due at a time, or later. */
export function makeAlarm(
  operations: ReturnType<typeof makeOperations>,
  parts: {
    readonly endings: ReturnType<typeof makeEndings>
    readonly report: ReturnType<typeof makeReport>
    /** Milliseconds since the epoch. */
    readonly now: () => number
  },
): (call: Call, dueAt: number) => void {
  const { endings, report, now } = parts

  /** A wake that was asked for stays open in the server; another is asked for if it is earlier. */
  function arm(call: Call, first: number): void {
    const { wakes } = call
    if (first >= (wakes.at(-1) ?? Number.POSITIVE_INFINITY)) return
    wakes.push(first)
    const millis = Math.max(0, Math.ceil(first - now()))
    operations.leave(call, `["sleep",${millis}]`).then(
      () => wake(call, first),
      // Refused: the call has asked for too many, and its timers never run.
      (error) => endings.threw(call, report(error)),
    )
  }

  function wake(call: Call, at: number): void {
    call.wakes.splice(call.wakes.lastIndexOf(at), 1)
    const time = Math.max(now(), at)
    const due: [number, Timer][] = []
    for (const entry of call.timers) if (entry[1].dueAt <= time) due.push(entry)
    due.sort(([, a], [, b]) => a.dueAt - b.dueAt)
    for (const [id, timer] of due) run(call, id, timer, time)
    if (call.finished) return
    let first = Number.POSITIVE_INFINITY
    for (const { dueAt } of call.timers.values()) first = Math.min(first, dueAt)
    arm(call, first)
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

  function add(call: Call, millis: number, every: number | null, run: () => void): number {
    const id = ++last
    const dueAt = now() + millis
    call.timers.set(id, { dueAt, every, run })
    arm(call, dueAt)
    return id
  }

  function millisOf(delay: unknown, otherwise: number): number {
    const wanted = Number(delay)
    return wanted > 0 && wanted <= millisMax ? wanted : otherwise
  }

  function callOf(name: string): Call {
    const call = calls.running()
    if (call === null) throw new TypeError(`${name}: call it in a handler`)
    return call
  }

  function start(name: string, repeats: boolean) {
    return (task: (...given: unknown[]) => unknown, delay?: unknown, ...given: unknown[]) => {
      const call = callOf(name)
      if (typeof task !== 'function') throw new TypeError(`${name} needs a function`)
      if (call.timers.size - call.timeouts >= timersMax) {
        throw new RangeError(`at most ${timersMax} timers`)
      }
      const millis = millisOf(delay, repeats ? 1 : 0)
      return add(call, millis, repeats ? millis : null, () => void task(...given))
    }
  }

  function clear(id?: unknown): void {
    calls.running()?.timers.delete(id as number)
  }

  /** For AbortSignal.timeout: nobody clears those, so they do not count as timers of the author. */
  function after(delay: unknown, task: () => void): void {
    const call = callOf('AbortSignal.timeout')
    call.timeouts += 1
    add(call, millisOf(delay, 0), null, () => {
      call.timeouts -= 1
      task()
    })
  }

  return {
    after,
    globals: {
      setTimeout: start('setTimeout', false),
      setInterval: start('setInterval', true),
      clearTimeout: clear,
      clearInterval: clear,
    },
  }
}
