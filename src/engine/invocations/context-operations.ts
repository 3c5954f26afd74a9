/** The `ctx.db` operations of a runner, performed in its transaction. */
import { KEY_BYTES_MAX } from '../../documents/key-encoding.ts'
import type { StoredDocument } from '../../documents/store.ts'
import type { Operation, RangeRequest } from '../../runner/protocol/operations.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import { INVALID_CURSOR, OperationError } from '../calls/operation-error.ts'
import type { FoundDocuments, OperationResult } from '../calls/outcomes.ts'
import type { RangeOutput } from '../transactions/ranges.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { TableSource } from '../transactions/transaction-tables.ts'

/** Matches a binary string, in which every character is one byte. */
const BINARY = /^[\0-\xff]*$/

/** Seals the cursors of lists that leave the server (storage/cursors.ts). */
export interface Cursors {
  /** Returns the same text for the same key, so that a Query returns the same bytes. */
  seal(list: string, key: string): string
  /** Returns the key; null for a text that was not sealed for this list. */
  open(list: string, cursor: string): string | null
}

export interface OperationContext {
  readonly prepared: TableSource
  readonly transaction: Transaction
  readonly cursors: Cursors
}

/**
 * Performs an operation on documents. Throws OperationError for a mistake of the author and a Fault
 * for an exceeded limit. TransactionHost performs the other operations that a transaction allows;
 * the rest belongs to Actions and is rejected.
 */
export function performOperation(
  context: OperationContext,
  operation: Operation,
): MaybePromise<OperationResult> {
  const { transaction } = context
  switch (operation[0]) {
    case 'get':
      return oneDocument(transaction.get(operation[1]))
    case 'range':
      return range(context, operation[1])
    case 'insert':
      return andThen(transaction.insert(operation[1], operation[2]), JSON.stringify)
    case 'patch':
      return andThen(transaction.patch(operation[1], operation[2], operation[3]), nullReply)
    case 'replace':
      return andThen(transaction.replace(operation[1], operation[2]), nullReply)
    case 'delete':
      return andThen(transaction.delete(operation[1]), nullReply)
    case 'run':
    case 'usage':
    case 'config':
    case 'issueGuest':
    case 'fetch':
    case 'abort':
    case 'sleep':
    case 'grantDownload':
    case 'signDownload':
    case 'grantUpload':
    case 'putFile':
    case 'readFile':
    case 'schedule':
    case 'cancelScheduled':
    case 'getScheduled':
      throw new OperationError('TypeError', `${operation[0]}: Queries and Mutations cannot do this`)
  }
}

function nullReply(): string {
  return 'null'
}

function oneDocument(document: MaybePromise<StoredDocument | null>): MaybePromise<FoundDocuments> {
  if (document instanceof Promise) return document.then(oneDocument)
  return { documents: document === null ? [] : [document], page: null }
}

function range(context: OperationContext, request: RangeRequest): MaybePromise<FoundDocuments> {
  const output = readRange(context, request)
  return output instanceof Promise
    ? pageOfPromise(context, request, output)
    : pageOf(context, request, output)
}

/** Reads a range for a speculative call; null if it cannot be prefetched. */
export function prefetchPage(
  context: OperationContext,
  request: RangeRequest,
): MaybePromise<FoundDocuments | null> {
  return andThen(
    context.transaction.prefetchRange(request),
    (output) => output && pageOf(context, request, output),
  )
}

async function pageOfPromise(
  context: OperationContext,
  request: RangeRequest,
  output: Promise<RangeOutput>,
): Promise<FoundDocuments> {
  return pageOf(context, request, await output)
}

function pageOf(
  context: OperationContext,
  request: RangeRequest,
  { documents, done, lastKey }: RangeOutput,
): FoundDocuments {
  const isComplete = request.next === 'none' && documents.length === request.limit
  const next = lastKey === null || isComplete ? null : cursorOf(context, request, lastKey)
  // Later commits may add documents after the last one, so a finished list has a cursor too.
  return { documents, page: { cursor: next ?? request.cursor ?? null, done } }
}

/** Checks the cursors before it reads anything. */
function readRange(context: OperationContext, request: RangeRequest): MaybePromise<RangeOutput> {
  const { cursor, until } = request
  const { transaction } = context
  try {
    if (cursor === undefined && until === undefined) return transaction.range(request)
    return transaction.range({
      ...request,
      ...(cursor !== undefined && { afterKey: keyOf(context, request, cursor) }),
      ...(until !== undefined && { untilKey: keyOf(context, request, until) }),
    })
  } catch (error) {
    if (error instanceof OperationError && error.name === INVALID_CURSOR)
      transaction.hasRejectedCursor = true
    throw error
  }
}

/**
 * Returns the cursor for the key of the last document. It is sealed where it leaves the invocation,
 * so that callers can neither read nor forge it, and plain where the runner continues the list in
 * the same invocation.
 */
function cursorOf(
  { prepared, cursors }: OperationContext,
  request: RangeRequest,
  key: string,
): string {
  return request.next === 'sealed' ? cursors.seal(listOf(prepared, request), key) : key
}

function keyOf(
  { prepared, cursors }: OperationContext,
  request: RangeRequest,
  cursor: string,
): string {
  const isSealed = request.next === 'sealed'
  const key = isSealed ? cursors.open(listOf(prepared, request), cursor) : plainKey(cursor)
  if (key !== null) return key
  throw new OperationError(INVALID_CURSOR, 'the cursor is damaged or belongs to another list')
}

/**
 * Identifies a list by the fields of its index, so that a cursor stays valid in a Release that
 * renames the index. Bounds and direction are not part of it: a list of the last hour has other
 * bounds for each page, and `intervalAfter` checks the key against them.
 */
function listOf(tables: TableSource, { table, index, equal }: RangeRequest): string {
  const indexes = (tables.tables.get(table) ?? tables.systemTables.get(table))?.indexes
  const fields = index === null ? [] : (indexes?.get(index)?.manifest.fields ?? null)
  return JSON.stringify([table, fields, equal])
}

/** Checks a plain cursor, whose length is bounded since the read set keeps it. */
function plainKey(cursor: string): string | null {
  return cursor.length <= KEY_BYTES_MAX && BINARY.test(cursor) ? cursor : null
}
