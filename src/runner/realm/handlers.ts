/**
 * One run of a handler, and what becomes of its result. Reading a result, or what was thrown, runs
 * accessors of the author: that is done before the frame ends, and so before all that is checked.
 */
import type { Call, Calls, makeEndings, makeOperations } from './calls.ts'
import type { Codec } from './codec.ts'
import type { makeContext } from './contexts.ts'
import type { makeDocuments } from './documents.ts'
import type { makeReport } from './reports.ts'

/** Starts a call; what its handler makes of it ends the call when the frame is worked. */
export function makeRun(
  calls: Calls,
  codec: Codec,
  operations: ReturnType<typeof makeOperations>,
  endings: ReturnType<typeof makeEndings>,
  report: ReturnType<typeof makeReport>,
  parts: {
    readonly contextOf: ReturnType<typeof makeContext>
    readonly documents: ReturnType<typeof makeDocuments>
    /** Errors of `ctx.fail`, with their codes. */
    readonly failures: WeakMap<object, string>
  },
) {
  const { contextOf, documents, failures } = parts

  function resultText({ handed }: Call, value: unknown): string {
    if (value === undefined) return 'null'
    if (handed.count === 0) return codec.encode(value, 'result')
    return codec.encode(value, 'result', (object) => documents.nameOf(handed, object))
  }

  /** What becomes of a call that threw. */
  function thrownEnd(call: Call, thrown: unknown): () => void {
    const code = typeof thrown === 'object' && thrown !== null ? failures.get(thrown) : undefined
    if (code !== undefined) return () => endings.failed(call, code)
    const text = report(thrown)
    return () => endings.threw(call, text)
  }

  /** `failed` where the result is none. */
  function endReturned(call: Call, text: string, failed: (() => void) | null): void {
    const isOwing = call.pending > 0 || call.unwatched.size > 0
    if (isOwing && call.isSpeculative) endings.isVoid(call)
    else if (call.unwatched.size > 0) {
      const [unwatched] = call.unwatched.values()
      const message = `${unwatched!.message} was not awaited: write "await" in front of it`
      endings.threw(call, report(new Error(message), unwatched))
    } else if (isOwing) {
      const message = 'an operation was still running when the Function ended: await each promise'
      endings.threw(call, report(new Error(message), operations.dangling(call)))
    } else if (failed !== null) failed()
    else if (call.rejected?.size) endings.threw(call, call.rejected.values().next().value!)
    else endings.returned(call, text)
  }

  function returnedEnd(call: Call, value: unknown): () => void {
    let text = ''
    let failed: (() => void) | null = null
    try {
      text = resultText(call, value)
    } catch (thrown) {
      failed = thrownEnd(call, thrown)
    }
    return () => endReturned(call, text, failed)
  }

  return async (call: Call, args: unknown): Promise<void> => {
    let end: () => void
    try {
      const value = await call.definition.handler(contextOf(call), codec.decode(args))
      end = returnedEnd(call, value)
    } catch (thrown) {
      end = thrownEnd(call, thrown)
    }
    call.isDone = true
    calls.see(call)
    // Not by a method: the code may have changed those, which nothing has put back yet.
    calls.done[calls.done.length] = end
  }
}
