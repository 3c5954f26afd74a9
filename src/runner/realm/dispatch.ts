/** Frames of the server: their way into the realm, and what is checked after each. */
import type { FunctionalIdentity } from '../../value/identities.ts'
import { bridge } from './bridge.ts'
import { activeCalls, frame, newCall, pendingRequests } from './calls.ts'
import { documents, type SentItem } from './documents.ts'
import { dropCall, endAtCpuLimit, endThrew, newPlaceholder } from './endings.ts'
import { report } from './error-reports.ts'
import { runHandler } from './handlers.ts'
import { restoreUnfrozen } from './isolation/unfrozen-guard.ts'
import { limits } from './limits.ts'
import {
  type DocumentsFrame,
  type RejectionFrame,
  rejectRequest,
  resolveDocuments,
  resolveValue,
} from './replies.ts'
import { workspace } from './workspace.ts'

/** The frame of `encodeInvoke`. */
type InvokeFrame = readonly [
  type: string,
  call: number,
  name: string,
  kind: string,
  nowMicros: string,
  seed: string,
  root: number,
  args: unknown,
  identity: FunctionalIdentity | null,
  prefetched: readonly SentItem[] | null,
  pages?: readonly SentPage[],
]

/** A prefetched page; its documents are among the last ones that are prefetched. */
type SentPage = readonly [operation: string, count: number, cursor: string | null, done: boolean]

const { parse } = JSON

type Message = readonly [type: string, call: number, operation: number, content: unknown]

/** Processes one frame, up to the microtasks that it queues. */
export function dispatch(text: string): void {
  const message = parse(text) as Message
  const [type, id, operation] = message
  if (type === 'invoke') invoke(message as unknown as InvokeFrame)
  else if (type === 'documents') resolveDocuments(message as unknown as DocumentsFrame)
  else if (type === 'forget') documents.forget(operation)
  else if (type === 'describe') bridge.emit(`["description",${id},${workspace.description()}]`)
  else dispatchToCall(message)
}

function dispatchToCall(message: Message): void {
  const [type, id, operation, content] = message
  const call = activeCalls.get(id)
  if (call === undefined) return
  frame.call = call
  if (type === 'reply') resolveValue(operation, content)
  else if (type === 'reject') rejectRequest(message as unknown as RejectionFrame)
  else if (type === 'cancel') dropCall(call)
}

function invoke(message: InvokeFrame): void {
  const [, id, name, , nowMicros, seed, root, args, identity, prefetched, pages = []] = message
  const definition = workspace.functions.get(name)
  const call = newCall({
    id,
    definition: definition ?? { kind: 'query', auth: 'none', errors: {}, handler: missing },
    nowMicros,
    seed,
    identity,
    root: activeCalls.get(root) ?? null,
    isSpeculative: prefetched !== null,
  })
  if (prefetched !== null) {
    const copies = documents.receive(prefetched, call.delivered, () => newPlaceholder(call))
    for (let i = pages.length - 1; i >= 0; i--) {
      const [operation, count, cursor, done] = pages[i]!
      const found = copies.splice(copies.length - count)
      call.prefetchedPages.set(operation, { documents: found, cursor, done })
    }
    for (let i = 0; i < copies.length; i++) {
      const item = prefetched[i]
      const id = typeof item === 'string' ? item : (copies[i] as { readonly _id: string })._id
      call.prefetched.set(id, copies[i] as object)
    }
  }
  activeCalls.set(id, call)
  frame.call = call
  bridge.runAs(call, () => void runHandler(call, args))
}

function missing(): never {
  throw new TypeError('the code has no such Function, although its manifest does')
}

/**
 * Ends the frame, which took `elapsedMicros` of the CPU with all its microtasks: restores what must
 * not change, and ends calls whose handler has ended, that used too much CPU time or that wait for
 * nothing. No code of an author runs here.
 */
export function endFrame(elapsedMicros: number): void {
  const { call } = frame
  // First, since everything below works with what may have been changed.
  const changed = restoreUnfrozen()
  if (changed !== null && call !== null) {
    const message = `"${changed}" of Array or its prototype was changed, which all calls share`
    endThrew(call, report(new TypeError(message), null))
  }
  if (frame.ends.length > 0) for (const end of frame.ends.splice(0)) end()
  frame.call = null
  if (frame.otherActiveCalls.length > 0) frame.otherActiveCalls.length = 0
  if (call !== null) {
    const charged = call.root ?? call
    charged.spentMicros += elapsedMicros
    if (charged.spentMicros > limits.cpuMillis * 1000) endAtCpuLimit(charged)
  }
  if (pendingRequests.size > 0) return
  for (const stuck of activeCalls.values()) {
    const message = 'the Function waits for a promise that nothing will settle'
    endThrew(stuck, report(new Error(message), null))
  }
}
