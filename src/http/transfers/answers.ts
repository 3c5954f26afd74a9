/** Sends response bodies at the rate of the peer, within the budget for unsent responses. */
import { nextTurn } from '../../system/event-loop.ts'
import type { Holder, MemoryBudget, Reservation } from '../../system/memory-budget.ts'
import { holderOf, type Sender } from './senders.ts'
import type { Transfers } from './transfers.ts'

/** Largest body that the runtime sends together with the head. */
const GATHERED_BYTES = 14 * 1024

/**
 * The socket buffers of the operating system hold bodies up to this size even if the peer does not
 * read. Longer bodies stay in the process until it does.
 */
const BUFFERED_CHARACTERS = 64 * 1024

/**
 * Size of one write. It is large enough for few system calls, and small enough that other calls run
 * between two writes.
 */
const PIECE_CHARACTERS = 256 * 1024

/**
 * Returns the body of a response, given in parts, or null if the budget for unsent responses is
 * exhausted. The runtime sends a string over 14 KiB in about 35 system calls: 6,400 responses of
 * 30 KB a second. It sends a stream of one chunk in two: 58,000 a second.
 */
export function answerBody(
  parts: readonly string[],
  transfers: Transfers,
  sender: Sender,
): string | ReadableStream | null {
  const characters = parts.reduce((sum, part) => sum + part.length, 0)
  if (characters > BUFFERED_CHARACTERS) {
    const reservation = reserve(parts, characters, transfers.answers, holderOf(sender))
    return reservation === null ? null : streamInPieces(parts, characters, transfers, reservation)
  }
  const text = parts.join('')
  if (characters * 3 <= GATHERED_BYTES) return text
  if (characters <= GATHERED_BYTES && Buffer.byteLength(text) <= GATHERED_BYTES) return text
  return directStream((controller) => {
    controller.write(text)
    controller.close()
  })
}

/** Reserves one byte for each character, or two if any character needs two bytes in memory. */
function reserve(
  parts: readonly string[],
  characters: number,
  budget: MemoryBudget,
  holder: Holder,
): Reservation | null {
  // The lower bound is checked first: the exact size takes a pass over the whole text.
  if (!budget.fits(characters, holder)) return null
  const isOneByte = parts.every((part) => Buffer.byteLength(part) === part.length)
  return budget.reserve(isOneByte ? characters : 2 * characters, holder)
}

/**
 * Streams a text in pieces, and waits for the peer between them. The parts are not joined: a long
 * part is mostly a cached result, and to copy it for each response would take milliseconds.
 */
function streamInPieces(
  parts: readonly string[],
  characters: number,
  { pace }: Transfers,
  reservation: Reservation,
): ReadableStream {
  return directStream(async (controller) => {
    // An error resets the connection; a regular end would make the response look complete.
    const abort = () => controller.close(new Error('the peer read the response too slowly'))
    const transfer = pace.begin(abort, characters)
    try {
      for (const piece of piecesOf(parts)) {
        // The peer disconnected or was too slow.
        if (!(await controller.write(piece))) return
        await nextTurn()
      }
      // Without this, a reader other than the socket would pull again.
      controller.close()
    } finally {
      transfer.end()
      reservation.release()
    }
  })
}

function* piecesOf(parts: readonly string[]): Generator<string> {
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const end = pieceEnd(part, at + PIECE_CHARACTERS)
      yield part.slice(at, end)
      at = end
    }
  }
}

/** Returns `end`, or the position after it where `end` would split a surrogate pair. */
function pieceEnd(text: string, end: number): number {
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end + 1 : end
}

function directStream(pull: Bun.DirectUnderlyingSource['pull']): ReadableStream {
  const source: Bun.DirectUnderlyingSource = { type: 'direct', pull }
  return new ReadableStream(source as unknown as UnderlyingSource)
}
