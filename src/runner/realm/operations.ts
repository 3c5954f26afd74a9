/** The operations of `ctx`, sent to the server or pipelined. */
import { bridge } from './bridge.ts'
import { type Call, noteRunning, pendingRequests } from './calls.ts'
import { flushPipelined, pipeline, pipelinedPromise } from './pipelining.ts'
import { WatchedPromise, watchWrite } from './watched-promise.ts'

/** Four times what a document may have: the server names the bound that was exceeded. */
const OPERATION_CHARACTERS_MAX = 4 * 1024 * 1024
/** Operations that a call pipelines in a row before it waits for the server. */
const PIPELINED_OPERATIONS_MAX = 1_024

const { stringify } = JSON
let lastRequest = 0

/**
 * Sends an operation for a reply. Returns a promise of the class `Kind`; `isOwed` if the Function
 * must wait for it. `error` was made at the location of the operation, if that is recorded.
 */
function send(
  call: Call,
  op: string,
  error: Error | null,
  Kind: typeof Promise<unknown> = Promise,
  isOwed = true,
): Promise<unknown> {
  if (call.finished) throw new Error('ctx was used after the Function had ended')
  flushPipelined(call)
  noteRunning(call)
  const id = ++lastRequest
  bridge.emit(`["operation",${call.id},${id},${op}]`)
  call.pipelinedInRow = 0
  call.requests += 1
  call.openRequests += 1
  if (isOwed) call.owedResults += 1
  return new Kind((resolve, reject) => {
    pendingRequests.set(id, { call, isOwed, resolve, reject, error })
  })
}

function checkSize(op: string): void {
  if (op.length <= OPERATION_CHARACTERS_MAX) return
  const most = `at most ${OPERATION_CHARACTERS_MAX}`
  throw new RangeError(`the operation has ${op.length} characters: ${most}`)
}

/**
 * Sends an operation that changes nothing; the Function must wait for it. A speculative call
 * records no location: the error for it costs a third of a small call.
 */
export function sendRead(call: Call, op: string): Promise<unknown> {
  checkSize(op)
  return send(call, op, call.isSpeculative ? null : new Error())
}

/** Sends an operation that may be open when the Function ends, which ends it. */
export function sendDetached(call: Call, op: string): Promise<unknown> {
  return send(call, op, new Error(), Promise, false)
}

function sendWatched(call: Call, op: string, error: Error | null): Promise<unknown> {
  return watchWrite(call, send(call, op, error, WatchedPromise), error)
}

/** `name` is what the author wrote, such as `ctx.db.patch`. */
function sendWrite(call: Call, op: string, name: string): Promise<unknown> {
  checkSize(op)
  // A prefetched document may be older than what is written now.
  forgetPrefetched(call)
  return sendWatched(call, op, call.isSpeculative ? null : new Error(name))
}

/** Sends a write of any size that its own bound allows; the Function must wait for it. */
export function sendWriting(call: Call, op: string, name: string): Promise<unknown> {
  return sendWatched(call, op, new Error(name))
}

function forgetPrefetched(call: Call): void {
  call.prefetched.clear()
  call.prefetchedPages.clear()
}

/**
 * Pipelines a write. Every thousandth in a row waits for the server: code that writes without end
 * must notice now and then that its call was cancelled.
 */
function pipelineWrite(call: Call, op: string, name: string, result: unknown): Promise<unknown> {
  if (call.pipelinedInRow >= PIPELINED_OPERATIONS_MAX) return sendWrite(call, op, name)
  checkSize(op)
  forgetPrefetched(call)
  pipeline(call, op)
  return watchWrite(call, pipelinedPromise(call, WatchedPromise, result), null)
}

/** Reads a document by its ID. */
export function readDocument(call: Call, id: string): Promise<unknown> {
  const op = `["get",${stringify(id)}]`
  const document = call.prefetched.get(id)
  if (document === undefined) return sendRead(call, op)
  // A second read is another copy.
  call.prefetched.delete(id)
  pipeline(call, op)
  return pipelinedPromise(call, Promise, document)
}

/** Reads a page of a range. */
export function readPage(call: Call, op: string): Promise<unknown> {
  const page = call.prefetchedPages.get(op)
  if (page === undefined) return sendRead(call, op)
  // A second read is another copy.
  call.prefetchedPages.delete(op)
  pipeline(call, op)
  return pipelinedPromise(call, Promise, page)
}

/** Inserts a document; the promise is that of its ID. */
export function insertDocument(call: Call, op: string, table: string): Promise<unknown> {
  const { inserts, nowMicros, seed } = call
  if (!call.isSpeculative || inserts === null) return sendWrite(call, op, 'ctx.db.insert')
  const id = bridge.documentId(table, nowMicros, seed, inserts)
  const inserted = pipelineWrite(call, op, 'ctx.db.insert', id)
  // Only now, since an operation that is too long throws.
  call.inserts = inserts + 1
  return inserted
}

/** Patches, replaces or deletes a document; `name` is what the author wrote. */
export function changeDocument(call: Call, op: string, name: string): Promise<unknown> {
  return call.isSpeculative ? pipelineWrite(call, op, name, null) : sendWrite(call, op, name)
}

/**
 * Calls another Function; `name` is what the author wrote. The location is recorded in a
 * speculative call too, since many authors catch its failures.
 */
export function callFunction(call: Call, kind: string, op: string, name: string): Promise<unknown> {
  checkSize(op)
  if (kind === 'query') return send(call, op, new Error())
  // The called Function may write and insert too.
  call.inserts = null
  forgetPrefetched(call)
  return sendWatched(call, op, new Error(name))
}

/** The error made at the location of a request that the call never waited for. */
export function danglingRequest(call: Call): Error | null {
  for (const request of pendingRequests.values()) {
    if (request.call === call && request.isOwed) return request.error
  }
  return null
}
