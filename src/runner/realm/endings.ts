/**
 * The ends of a call: each sends one frame and removes the call. Placeholders are here, since every
 * look into one ends a call: objects that stand for documents whose content the server kept to
 * itself. The code of a Query may hold, compare and return them.
 */

import type { MisspeculationCause } from '../protocol/messages.ts'
import { bridge } from './bridge.ts'
import { activeCalls, type Call, frame, pendingRequests, runningCall } from './calls.ts'
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

/** Ends a call that the server has to repeat in another way. */
export function endMisspeculated(call: Call, cause: MisspeculationCause): void {
  endCall(call, 'misspeculated', `"${cause}",`)
}

/** The target of a placeholder. */
interface Target {
  readonly owner: Call
}

// Captured, since the code of a Workspace may replace the global.
const PlaceholderProxy = Proxy

const LOOKS: ProxyHandler<Target> = {
  /**
   * Promises ask an object for `then` before they resolve with it. No table of the Release has a
   * field of that name.
   */
  get: (target, name) => (name === 'then' ? undefined : endAtLook(target)),
  set: endAtLook,
  has: endAtLook,
  deleteProperty: endAtLook,
  ownKeys: endAtLook,
  getOwnPropertyDescriptor: endAtLook,
  defineProperty: endAtLook,
  getPrototypeOf: endAtLook,
  setPrototypeOf: endAtLook,
  isExtensible: endAtLook,
  preventExtensions: endAtLook,
}

export function newPlaceholder(owner: Call): object {
  return new PlaceholderProxy({ owner }, LOOKS)
}

/**
 * Ends the call whose code looks into a placeholder, at the end of the frame. If another call
 * received it, the code has kept it outside of calls, and would find it there again: the server
 * ends the process instead.
 */
function endAtLook({ owner }: Target): never {
  const call = runningCall()
  if (call !== null) {
    const cause = call === owner ? 'read' : 'kept'
    // Not by a method: the code may have changed those of arrays, which are not restored yet.
    frame.ends[frame.ends.length] = () => endMisspeculated(call, cause)
  }
  throw new Error('the content of this document is with the server')
}
