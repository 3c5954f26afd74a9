/** Promises that the code of a call rejects and does not handle. */
import { bridge } from './bridge.ts'
import { frame } from './calls.ts'
import { report } from './error-reports.ts'

const { defineProperty, deleteProperty, getPrototypeOf } = Reflect
const MESSAGE = 'a promise was rejected and not awaited, write "await" in front of it: '

/**
 * Records a promise that was rejected in the current frame and that no code has handled. It may
 * still be awaited in a later frame, so it fails the call only when that ends.
 */
export function recordRejection(reason: unknown, promise: object): void {
  const { call, otherActiveCalls } = frame
  if (call === null || call.finished) return
  // `await`, `then` and everything else that takes a promise read this property of it first.
  const isWatched = defineProperty(promise, 'constructor', {
    get(this: object): unknown {
      call.unhandledRejections?.delete(promise)
      // The getter holds the call, which must not live for as long as the promise may.
      deleteProperty(promise, 'constructor')
      bridge.rejectionHandled()
      return getPrototypeOf(this)!.constructor
    },
    configurable: true,
  })
  // If other calls ran too, nothing tells which of them rejected it, and none may fail for another.
  if (!isWatched || otherActiveCalls.length > 0) return
  // Reported now, since that runs accessors of the author, and no code of theirs may run after the
  // checks at the end of the frame.
  const text = report(reason, reason, MESSAGE)
  call.unhandledRejections ??= new Map()
  call.unhandledRejections.set(promise, text)
}
