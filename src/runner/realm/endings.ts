/** The ends of a call: each sends one frame and removes the call. */
import { bridge } from './bridge.ts'
import { activeCalls, type Call, frame, pendingRequests } from './calls.ts'
import { limits } from './limits.ts'
import { unsentOperations } from './pipelining.ts'

const { stringify } = JSON

function usageText(call: Call): string {
  const micros = call === frame.call ? bridge.spentMicros() : (call.root ?? call).spentMicros
  const { usedClock, usedRandom, usedIdentity, lines } = call
  const used = `${usedClock},${usedRandom},${usedIdentity},${micros}`
  return `[${used},[${lines}]${unsentOperations(call)}]`
}

/** Removes a call without a frame: the server no longer waits for it. */
export function dropCall(call: Call): void {
  call.finished = true
  activeCalls.delete(call.id)
  if (call.openRequests === 0) return
  for (const [id, request] of pendingRequests) if (request.call === call) pendingRequests.delete(id)
}

function endCall(call: Call, type: string, content: string): void {
  if (call.finished) return
  dropCall(call)
  bridge.emit(`["${type}",${call.id},${content}${usageText(call)}]`)
}

/** Ends a call with its result, as JSON text, or with a limit if that is too long. */
export function endReturned(call: Call, text: string): void {
  const { resultBytes } = limits
  const fits = text.length * 3 <= resultBytes || bridge.utf8Length(text) <= resultBytes
  if (fits) endCall(call, 'returned', `${text},`)
  else endCall(call, 'limit', '"result",')
}

/** Ends a call with an error code that its Function declares. */
export function endFailed(call: Call, code: string): void {
  endCall(call, 'failed', `${stringify(code)},`)
}

/** Ends a call with the JSON text of an ErrorReport. */
export function endThrew(call: Call, report: string): void {
  endCall(call, 'threw', `${report},`)
}

export function endAtCpuLimit(call: Call): void {
  endCall(call, 'limit', '"cpu",')
}

/** Ends a speculative call that only a synchronous one can report the failure of. */
export function endMisspeculated(call: Call): void {
  endCall(call, 'misspeculated', '')
}
