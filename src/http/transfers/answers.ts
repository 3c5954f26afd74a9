/** Bodies of answers: sent as the peer takes them, within the budget of unsent answers. */
import type { Holder, MemoryBudget, Reservation } from './memory-budget.ts'
import { holderOf, type Sender } from './senders.ts'
import type { Transfers } from './transfers.ts'

/** Head and body that the runtime gathers before it sends, without the head. */
const GATHERED_BYTES = 14 * 1024

/**
 * The buffers of the operating system take answers up to this size, whether or not the peer reads;
 * longer ones stay in the process until it does.
 */
const BUFFERED_CHARACTERS = 64 * 1024

/** Written at once: long enough for few system calls, short enough for other calls in between. */
const PIECE_CHARACTERS = 256 * 1024

/**
 * Returns the body of a response, or null where the budget has no room for what the peer may leave
 * untaken. A body of more than the gathered bytes leaves the runtime with its head in some 35
 * pieces, each a system call: 6,400 answers of 30 KB a second. As a stream of one chunk it leaves
 * in two: 58,000.
 */
export function answerBody(
  text: string,
  transfers: Transfers,
  sender: Sender,
): string | ReadableStream | null {
  if (text.length > BUFFERED_CHARACTERS) {
    const reservation = reserve(text, transfers.answers, holderOf(sender))
    return reservation === null ? null : sentInPieces(text, transfers, reservation)
  }
  if (text.length * 3 <= GATHERED_BYTES) return text
  if (text.length <= GATHERED_BYTES && Buffer.byteLength(text) <= GATHERED_BYTES) return text
  return directStream((controller) => {
    controller.write(text)
    controller.close()
  })
}

/** A text has one byte a character in memory, or two if any of its characters needs them. */
function reserve(text: string, budget: MemoryBudget, holder: Holder): Reservation | null {
  // To look at the text would copy a long one, which a rejected one is not worth.
  if (!budget.fits(text.length, holder)) return null
  const isOneByte = Buffer.byteLength(text) === text.length
  return budget.reserve(isOneByte ? text.length : 2 * text.length, holder)
}

/** The piece after one that the peer has no room for is made when it has. */
function sentInPieces(text: string, { pace }: Transfers, reservation: Reservation): ReadableStream {
  return directStream(async (controller) => {
    // This cuts the connection: an answer that ended in any other way would look whole.
    const cut = () => controller.close(new Error('the answer was taken too slowly'))
    const transfer = pace.begin(cut, text.length)
    try {
      for (let at = 0; at < text.length; ) {
        const end = pieceEnd(text, at + PIECE_CHARACTERS)
        // Nothing is written any more once the peer has gone, or was too slow.
        if (!(await controller.write(text.slice(at, end)))) return
        at = end
        await nextTurn()
      }
      // A reader other than the socket would pull again after a stream that did not close.
      controller.close()
    } finally {
      transfer.end()
      reservation.release()
    }
  })
}

/** Does not part the two halves of one character. */
function pieceEnd(text: string, end: number): number {
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end + 1 : end
}

/** Lets other requests have their turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function directStream(pull: Bun.DirectUnderlyingSource['pull']): ReadableStream {
  const source: Bun.DirectUnderlyingSource = { type: 'direct', pull }
  return new ReadableStream(source as unknown as UnderlyingSource)
}
