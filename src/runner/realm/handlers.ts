/** One run of a handler, and what becomes of its result. */
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

  function endReturned(call: Call, value: unknown): void {
    const { changed } = call
    const isOwing = call.pending > 0 || call.unwatched.size > 0
    if (changed !== null) {
      const message = `"${changed}" of Array or its prototype was changed, which all calls share`
      endings.threw(call, report(new TypeError(message), null))
    } else if (isOwing && call.isAhead) endings.isVoid(call)
    else if (call.unwatched.size > 0) {
      const [unwatched] = call.unwatched.values()
      const message = `${unwatched!.message} was not awaited: write "await" in front of it`
      endings.threw(call, report(new Error(message), unwatched))
    } else if (isOwing) {
      const message = 'an operation was still running when the Function ended: await each promise'
      endings.threw(call, report(new Error(message), operations.dangling(call)))
    } else endings.returned(call, resultText(call, value))
  }

  function endThrown(call: Call, thrown: unknown): void {
    const code = typeof thrown === 'object' && thrown !== null ? failures.get(thrown) : undefined
    if (code === undefined) endings.threw(call, report(thrown))
    else endings.failed(call, code)
  }

  function end(call: Call, value: unknown): void {
    try {
      endReturned(call, value)
    } catch (thrown) {
      endThrown(call, thrown)
    }
  }

  return async (call: Call, args: unknown): Promise<void> => {
    try {
      const value = await call.definition.handler(contextOf(call), codec.decode(args))
      calls.done.push(() => end(call, value))
    } catch (thrown) {
      calls.done.push(() => endThrown(call, thrown))
    }
  }
}
