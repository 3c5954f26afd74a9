/**
 * Timers of Actions. A runner waits for nothing but frames, so the server wakes it: one `sleep`
 * operation for the timer that is due first stands for all of a call.
 */
import { TIMERS_MAX } from '../../protocol/messages.ts'
import { type Call, runningCall, type Timer } from '../calls.ts'
import { endThrew } from '../endings.ts'
import { report } from '../error-reports.ts'
import { nowMillis } from '../globals/clock.ts'
import { sendDetached } from '../operations.ts'

const MILLIS_MAX = 2 ** 31 - 1
let lastTimer = 0

/** Requests a wake at `dueAt`, unless an earlier one is open: an open one cannot be withdrawn. */
function requestWake(call: Call, dueAt: number): void {
  const { wakeTimes } = call
  if (dueAt >= (wakeTimes.at(-1) ?? Number.POSITIVE_INFINITY)) return
  wakeTimes.push(dueAt)
  const millis = Math.max(0, Math.ceil(dueAt - nowMillis()))
  sendDetached(call, `["sleep",${millis}]`).then(
    () => runDueTimers(call, dueAt),
    // The server rejects it if the call has requested too many: its timers would never run.
    (error) => endThrew(call, report(error)),
  )
}

function runDueTimers(call: Call, at: number): void {
  call.wakeTimes.splice(call.wakeTimes.lastIndexOf(at), 1)
  const time = Math.max(nowMillis(), at)
  const due: [number, Timer][] = []
  for (const entry of call.timers) if (entry[1].dueAt <= time) due.push(entry)
  due.sort(([, a], [, b]) => a.dueAt - b.dueAt)
  for (const [id, timer] of due) runTimer(call, id, timer, time)
  if (call.finished) return
  let first = Number.POSITIVE_INFINITY
  for (const { dueAt } of call.timers.values()) first = Math.min(first, dueAt)
  requestWake(call, first)
}

function runTimer(call: Call, id: number, timer: Timer, time: number): void {
  // An earlier one may have cleared it.
  if (call.finished || call.timers.get(id) !== timer) return
  if (timer.every === null) call.timers.delete(id)
  else timer.dueAt = time + timer.every
  try {
    timer.run()
  } catch (thrown) {
    endThrew(call, report(thrown))
  }
}

function addTimer(call: Call, millis: number, every: number | null, run: () => void): number {
  const id = ++lastTimer
  const dueAt = nowMillis() + millis
  call.timers.set(id, { dueAt, every, run })
  requestWake(call, dueAt)
  return id
}

function millisOf(delay: unknown, otherwise: number): number {
  const wanted = Number(delay)
  return wanted > 0 && wanted <= MILLIS_MAX ? wanted : otherwise
}

function callFor(name: string): Call {
  const call = runningCall()
  if (call === null) throw new TypeError(`${name}: call it in a handler`)
  return call
}

function timerStarter(name: string, repeats: boolean) {
  return (task: (...given: unknown[]) => unknown, delay?: unknown, ...given: unknown[]) => {
    const call = callFor(name)
    if (typeof task !== 'function') throw new TypeError(`${name} needs a function`)
    if (call.timers.size - call.timeouts >= TIMERS_MAX) {
      throw new RangeError(`at most ${TIMERS_MAX} timers: clear those that are not needed`)
    }
    const millis = millisOf(delay, repeats ? 1 : 0)
    return addTimer(call, millis, repeats ? millis : null, () => void task(...given))
  }
}

function clearTimer(id?: unknown): void {
  runningCall()?.timers.delete(id as number)
}

/**
 * Runs a task after a time, for AbortSignal.timeout. The author cannot clear it, so it does not
 * count as one of the author's timers.
 */
export function startTimeout(delay: unknown, task: () => void): void {
  const call = callFor('AbortSignal.timeout')
  call.timeouts += 1
  addTimer(call, millisOf(delay, 0), null, () => {
    call.timeouts -= 1
    task()
  })
}

export const TIMER_GLOBALS = {
  setTimeout: timerStarter('setTimeout', false),
  setInterval: timerStarter('setInterval', true),
  clearTimeout: (id?: unknown) => clearTimer(id),
  clearInterval: (id?: unknown) => clearTimer(id),
}
