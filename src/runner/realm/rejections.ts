/** What becomes of promises that a call's code rejects and looks away from. */
import type { Bridge } from './bridge.ts'
import type { Calls } from './calls.ts'
import type { makeReport } from './reports.ts'

/**
 * Hears of a promise that was rejected in the frame that is worked, and that nobody has looked at.
 * It may still be awaited in a later one, so the call is judged at its end.
 */
export function makeRejected(bridge: Bridge, calls: Calls, report: ReturnType<typeof makeReport>) {
  const { defineProperty, deleteProperty, getPrototypeOf } = Reflect
  const message = 'a promise was rejected and nobody awaited it, write "await" in front of it: '

  return (reason: unknown, promise: object): void => {
    const { current: call, guests } = calls
    if (call === null || call.finished) return
    // `await`, `then` and whatever takes a promise read this of it first.
    const isWatched = defineProperty(promise, 'constructor', {
      get(this: object): unknown {
        call.rejected?.delete(promise)
        // It leads to the call, which must not live for as long as the promise may.
        deleteProperty(promise, 'constructor')
        bridge.lookedAt()
        return getPrototypeOf(this)!.constructor
      },
      configurable: true,
    })
    // Nothing says whose it is where others ran too, and none is to fail for another.
    if (!isWatched || guests.length > 0) return
    // Now, since reading it runs accessors of the author: no code of theirs runs behind the checks.
    const text = report(reason, reason, message)
    call.rejected ??= new Map()
    call.rejected.set(promise, text)
  }
}
