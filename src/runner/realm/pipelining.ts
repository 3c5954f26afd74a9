/**
 * Operations whose result a speculative call assumes instead of waiting for a reply: sent many to a
 * frame, and their results delivered one at a time.
 */
import { PIPELINED_CHARACTERS_MAX } from '../protocol/messages.ts'
import { bridge } from './bridge.ts'
import { type Call, frame, noteRunning } from './calls.ts'

/** Sends the operations that are gathered. */
export function flushPipelined(call: Call): void {
  if (call.pipelined === '') return
  bridge.emit(`["pipelined",${call.id},[${call.pipelined}]]`)
  call.pipelined = ''
}

/** The gathered operations as the last part of the usage of a call that ends. */
export function unsentOperations(call: Call): string {
  return call.pipelined === '' ? '' : `,[${call.pipelined}]`
}

/** Gathers an operation. Throws if the call has ended. */
export function pipeline(call: Call, op: string): void {
  if (call.finished) throw new Error('ctx was used after the Function had ended')
  call.pipelined += call.pipelined === '' ? op : `,${op}`
  call.pipelinedInRow += 1
  if (call.pipelined.length > PIPELINED_CHARACTERS_MAX) flushPipelined(call)
}

/** Returns a promise of the class `Kind` of the assumed result of a pipelined operation. */
export function pipelinedPromise(
  call: Call,
  Kind: typeof Promise<unknown>,
  result: unknown,
): Promise<unknown> {
  call.owedResults += 1
  noteRunning(call)
  return new Kind((resolve) => {
    call.pipelinedResults.push({ precedingRequests: call.requests, resolve, result })
  })
}

/** Delivers the next pipelined result, if one is due; tells whether there was one. */
export function deliverPipelined(): boolean {
  const { call, otherActiveCalls } = frame
  if (call !== null && deliverNext(call)) return true
  for (let i = 0; i < otherActiveCalls.length; i++) {
    if (deliverNext(otherActiveCalls[i]!)) return true
  }
  return false
}

function deliverNext(call: Call): boolean {
  if (call.handlerEnded || call.finished) return false
  const next = call.pipelinedResults[0]
  if (next === undefined || next.precedingRequests > call.requests - call.openRequests) return false
  call.pipelinedResults.shift()
  call.owedResults -= 1
  next.resolve(next.result)
  return true
}
