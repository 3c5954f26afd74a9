/** Replies of the server to operations. */
import type { ViolatedIndex } from '../protocol/messages.ts'
import { activeCalls, frame, type PendingRequest, pendingRequests } from './calls.ts'
import { decode } from './decoding.ts'
import { documents, type SentItem } from './documents.ts'
import { newPlaceholder } from './endings.ts'

/** The frame of `encodeRejection`. */
export type RejectionFrame = readonly [
  type: string,
  call: number,
  operation: number,
  name: string,
  message: string,
  code: string | null,
  violated: ViolatedIndex | null,
]

/** The frame of `encodeDocuments`. */
export type DocumentsFrame = readonly [
  type: string,
  call: number,
  operation: number,
  items: readonly SentItem[],
  cursor?: string | null,
  done?: boolean,
]

const { defineProperty } = Object
/** Marks an error as an instance of the class that the module `svc` exports. */
const violationKey = Symbol.for('svc.uniqueViolation')

/** Errors with which a call may end as a declared failure, with their codes. */
export const failureCodes = new WeakMap<object, string>()

/** Takes a request whose reply has come; null if its call has ended. */
function takeRequest(id: number): PendingRequest | null {
  const request = pendingRequests.get(id)
  if (request === undefined) return null
  pendingRequests.delete(id)
  request.call.openRequests -= 1
  if (request.isOwed) request.call.owedResults -= 1
  return request
}

/** Resolves a request with Stored JSON as JSON.parse made it. */
export function resolveValue(id: number, json: unknown): void {
  takeRequest(id)?.resolve(decode(json))
}

/** Resolves a request with one document or null, or with a page of a range. */
export function resolveDocuments(message: DocumentsFrame): void {
  const [, id, operation, items, cursor, done] = message
  const call = activeCalls.get(id)
  frame.call = call ?? null
  // Also for a call that has ended: the server counts on the documents being here.
  const copies = documents.receive(items, call?.delivered ?? null, () => newPlaceholder(call!))
  if (call === undefined) return
  const found = done === undefined ? (copies[0] ?? null) : { documents: copies, cursor, done }
  takeRequest(operation)?.resolve(found)
}

/** Rejects a request with an error whose stack leads to the operation in the author's code. */
export function rejectRequest(message: RejectionFrame): void {
  const [, , id, name, text, code, violated] = message
  const request = takeRequest(id)
  if (request === null) return
  const { reject } = request
  const error = request.error ?? new Error()
  defineProperty(error, 'name', { value: name, writable: true, configurable: true })
  error.message = text
  if (code !== null) {
    defineProperty(error, 'code', { value: code, enumerable: true, writable: true })
    if (name === 'FunctionError') failureCodes.set(error, code)
  }
  if (violated !== null) {
    const { table, index } = violated
    const fixed = { enumerable: true, writable: true, configurable: true }
    defineProperty(error, 'table', { value: table, ...fixed })
    defineProperty(error, 'index', { value: index, ...fixed })
    defineProperty(error, violationKey, { value: true })
  }
  reject(error)
}
