/** What a runner may ask of its transaction, and the texts it is answered with. */

import { KEY_BYTES_MAX } from '../../documents/key-encoding.ts'
import type { StoredDocument } from '../../documents/store.ts'
import type { Operation, RangeRequest } from '../../runner/operations.ts'
import { andThen, type MaybePromise } from '../../system/maybe-promise.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { FoundDocuments, OperationAnswer } from '../runners/outcomes.ts'
import type { RangeOutput } from '../transactions/ranges.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { INVALID_CURSOR, OperationError } from './operation-error.ts'

/** Every byte of a key is one character. */
const BINARY = /^[\0-\xff]*$/

/** Seals the places of lists that leave the server (storage/cursors.ts). */
export interface Cursors {
  /** The same text each time, so that a Query answers the same bytes. */
  seal(list: string, key: string): string
  /** The key; null for what was not sealed for this list. */
  open(list: string, cursor: string): string | null
}

export interface Performing {
  readonly prepared: PreparedRelease
  readonly transaction: Transaction
  readonly cursors: Cursors
}

/**
 * Throws Refusal for the author's mistakes, a Fault for a limit. What is no matter of documents is
 * answered before it comes here, or is nothing that a transaction does.
 */
export function perform(
  performing: Performing,
  operation: Operation,
): MaybePromise<OperationAnswer> {
  const { transaction } = performing
  switch (operation[0]) {
    case 'get':
      return found(transaction.get(operation[1]))
    case 'range':
      return range(performing, operation[1])
    case 'insert':
      return andThen(transaction.insert(operation[1], operation[2]), JSON.stringify)
    case 'patch':
      return andThen(transaction.patch(operation[1], operation[2], operation[3]), nothing)
    case 'replace':
      return andThen(transaction.replace(operation[1], operation[2]), nothing)
    case 'delete':
      return andThen(transaction.delete(operation[1]), nothing)
    case 'run':
    case 'usage':
    case 'config':
    case 'issueGuest':
    case 'fetch':
    case 'abort':
    case 'sleep':
      throw new OperationError('TypeError', `${operation[0]}: Queries and Mutations cannot do this`)
  }
}

function nothing(): string {
  return 'null'
}

function found(document: MaybePromise<StoredDocument | null>): MaybePromise<FoundDocuments> {
  if (document instanceof Promise) return document.then(found)
  return { documents: document === null ? [] : [document], page: null }
}

function range(performing: Performing, request: RangeRequest): MaybePromise<FoundDocuments> {
  const output = page(performing, request)
  return output instanceof Promise
    ? foundLater(performing, request, output)
    : foundIn(performing, request, output)
}

async function foundLater(
  performing: Performing,
  request: RangeRequest,
  output: Promise<RangeOutput>,
): Promise<FoundDocuments> {
  return foundIn(performing, request, await output)
}

function foundIn(
  performing: Performing,
  request: RangeRequest,
  { documents, done, lastKey }: RangeOutput,
): FoundDocuments {
  const isAll = request.next === 'none' && documents.length === request.limit
  const next = lastKey === null || isAll ? null : cursorOf(performing, request, lastKey)
  // Behind the last document there may be more later, so a finished list keeps its place too.
  return { documents, page: { cursor: next ?? request.cursor ?? null, done } }
}

/** A cursor is looked at before anything is read. */
function page(performing: Performing, request: RangeRequest): MaybePromise<RangeOutput> {
  const { cursor } = request
  const { transaction } = performing
  try {
    if (cursor === undefined) return transaction.range(request)
    return transaction.range({ ...request, afterKey: keyOf(performing, request, cursor) })
  } catch (error) {
    if (error instanceof OperationError && error.name === INVALID_CURSOR)
      transaction.refusedCursor = true
    throw error
  }
}

/**
 * A cursor is the key of the last document: sealed where it leaves the invocation, since callers
 * must neither read it nor make one up; plain where the runner reads on in the same invocation.
 */
function cursorOf({ prepared, cursors }: Performing, request: RangeRequest, key: string): string {
  return request.next === 'sealed' ? cursors.seal(listOf(prepared, request), key) : key
}

function keyOf({ prepared, cursors }: Performing, request: RangeRequest, cursor: string): string {
  const isSealed = request.next === 'sealed'
  const key = isSealed ? cursors.open(listOf(prepared, request), cursor) : plainKey(cursor)
  if (key !== null) return key
  throw new OperationError(INVALID_CURSOR, 'the cursor is damaged, or of another list')
}

/**
 * The same list in the next Release, whatever its index is called there. Bounds and direction are
 * no part of it: a list of the last hour has other bounds at each page, and `behind` checks them.
 */
function listOf({ tables }: PreparedRelease, { table, index, equal }: RangeRequest): string {
  const indexes = tables.get(table)?.indexes
  const fields = index === null ? [] : (indexes?.get(index)?.manifest.fields ?? null)
  return JSON.stringify([table, fields, equal])
}

/** Keys are binary strings. The read set keeps what it begins behind. */
function plainKey(cursor: string): string | null {
  return cursor.length <= KEY_BYTES_MAX && BINARY.test(cursor) ? cursor : null
}
