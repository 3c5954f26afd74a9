/** What a runner may ask of its transaction, and the texts it is answered with. */

import type { Operation, RangeRequest } from '../runner/operations.ts'
import { decodeBase64Url, encodeBase64Url } from '../value/base64url.ts'
import { Malformed } from '../value/malformed.ts'
import type { RangeOutput } from './ranges.ts'
import { INVALID_CURSOR, Refusal } from './refusal.ts'
import type { Transaction } from './transaction.ts'

/**
 * Answers Stored JSON text. Throws Refusal for the author's mistakes, a Fault for a limit. What is
 * no matter of documents is answered before it comes here, or is nothing that a transaction does.
 */
export async function perform(transaction: Transaction, operation: Operation): Promise<string> {
  switch (operation[0]) {
    case 'get':
      return transaction.get(operation[1])
    case 'range':
      return range(transaction, operation[1])
    case 'insert':
      return JSON.stringify(await transaction.insert(operation[1], operation[2]))
    case 'patch':
      await transaction.patch(operation[1], operation[2], operation[3])
      return 'null'
    case 'replace':
      await transaction.replace(operation[1], operation[2])
      return 'null'
    case 'delete':
      await transaction.delete(operation[1])
      return 'null'
    case 'run':
    case 'usage':
    case 'config':
    case 'issueGuest':
    case 'fetch':
    case 'abort':
    case 'sleep':
      throw new Refusal('TypeError', `${operation[0]}: Queries and Mutations cannot do this`)
  }
}

async function range(transaction: Transaction, request: RangeRequest): Promise<string> {
  const { cursor } = request
  const found = await page(transaction, request)
  const next = found.lastKey === null ? null : encodeCursor(found.lastKey)
  // Behind the last document there may be more later, so a finished list keeps its place too.
  const place = next ?? cursor ?? null
  const documents = found.documents.join(',')
  return `{"cursor":${JSON.stringify(place)},"documents":[${documents}],"done":${found.done}}`
}

async function page(transaction: Transaction, request: RangeRequest): Promise<RangeOutput> {
  const { cursor } = request
  try {
    const afterKey = cursor === undefined ? undefined : decodeCursor(cursor)
    return await transaction.range({ ...request, afterKey })
  } catch (error) {
    if (error instanceof Refusal && error.name === INVALID_CURSOR) transaction.refusedCursor = true
    throw error
  }
}

/** A cursor is the key of the last document; it is checked against the list that it is used on. */
function encodeCursor(key: string): string {
  return encodeBase64Url(Buffer.from(key, 'latin1'))
}

function decodeCursor(cursor: string): string {
  try {
    return Buffer.from(decodeBase64Url(cursor)).toString('latin1')
  } catch (error) {
    if (error instanceof Malformed) throw new Refusal(INVALID_CURSOR, 'the cursor is damaged')
    throw error
  }
}
