/**
 * Runs the handler of a call. Reading its result, or what it threw, runs accessors of the author:
 * that is done before the end of the frame, and so before everything that is checked there.
 */
import { type Call, frame, noteRunning } from './calls.ts'
import { newContext } from './ctx/context.ts'
import { decode } from './decoding.ts'
import { nameOfCopy, nameOfPlaceholder } from './documents.ts'
import { encode } from './encoding.ts'
import { endFailed, endMisspeculated, endReturned, endThrew } from './endings.ts'
import { report } from './error-reports.ts'
import { danglingRequest } from './operations.ts'
import { failureCodes } from './replies.ts'

/** Runs the handler; the call ends with the frame in which that ends. */
export async function runHandler(call: Call, args: unknown): Promise<void> {
  let end: () => void
  try {
    const value = await call.definition.handler(newContext(call), decode(args))
    end = endOfResult(call, value)
  } catch (thrown) {
    end = endOfThrown(call, thrown)
  }
  call.handlerEnded = true
  noteRunning(call)
  // Not by a method: the code may have changed those of arrays, which are not restored yet.
  frame.ends[frame.ends.length] = end
}

function resultText({ delivered }: Call, value: unknown): string {
  if (value === undefined) return 'null'
  if (delivered.count === 0) return encode(value, 'result')
  return encode(value, 'result', {
    placeholder: (object) => nameOfPlaceholder(delivered, object),
    copy: (object) => nameOfCopy(delivered, object),
  })
}

/** Prepares the end of a call that threw. */
function endOfThrown(call: Call, thrown: unknown): () => void {
  const code = typeof thrown === 'object' && thrown !== null ? failureCodes.get(thrown) : undefined
  if (code !== undefined) return () => endFailed(call, code)
  const text = report(thrown)
  return () => endThrew(call, text)
}

/** Prepares the end of a call that returned. */
function endOfResult(call: Call, value: unknown): () => void {
  let text = ''
  let endInstead: (() => void) | null = null
  try {
    text = resultText(call, value)
  } catch (thrown) {
    endInstead = endOfThrown(call, thrown)
  }
  return () => endWithResult(call, text, endInstead)
}

/** Ends a call that returned; `endInstead` if its result cannot be sent. */
function endWithResult(call: Call, text: string, endInstead: (() => void) | null): void {
  const { owedResults, unobservedWrites, unhandledRejections } = call
  const isOwing = owedResults > 0 || unobservedWrites.size > 0
  if (isOwing && call.isSpeculative) endMisspeculated(call, 'failed')
  else if (unobservedWrites.size > 0) {
    const [write] = unobservedWrites.values()
    const message = `${write!.message} was not awaited: write "await" in front of it`
    endThrew(call, report(new Error(message), write))
  } else if (isOwing) {
    const message = 'an operation was still running when the Function ended: await each promise'
    endThrew(call, report(new Error(message), danglingRequest(call)))
  } else if (endInstead !== null) endInstead()
  else if (unhandledRejections?.size) endThrew(call, unhandledRejections.values().next().value!)
  else endReturned(call, text)
}
