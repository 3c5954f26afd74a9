/**
 * Sends response bodies at the rate of the peer, within the budget for unsent responses, and
 * compressed where the client accepts it and the operation permits it.
 */
import {
  COMPRESSED_BYTES_MIN,
  type CompressedForms,
  type CompressedText,
  type ContentCoding,
  compressInThread,
  compressText,
  encodeAround,
} from '../../system/compression.ts'
import { nextTurn } from '../../system/event-loop.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import type { Holder, MemoryBudget, Reservation } from '../../system/memory/memory-budget.ts'
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
 * Longest text that is compressed on the event loop: it takes 0.3 ms, as much as the shortest
 * Query. Longer texts are compressed in a thread.
 */
const SYNCHRONOUS_CHARACTERS_MAX = 64 * 1024
/**
 * Longest text that is compressed. A browser keeps no more than 8 MiB to decompress zstd
 * (RFC 9659), and each compression in a thread holds the text and its compressed form.
 * @limit Requests: a response that is compressed; a longer one is sent as it is
 */
export const COMPRESSED_BYTES_MAX = 8 * 1024 * 1024
/** Room for the texts around a result in a compressed response. */
const EDGES_BYTES_MAX = 4 * 1024

/** The text of a response: its parts, of which only the middle one is compressed. */
export type AnswerText = readonly [before: string, text: string, after: string]

/** The permission to compress a response, with what a compression needs. */
export interface Compression {
  /** The coding that the client prefers; null for none. */
  readonly coding: ContentCoding | null
  /** The compressed forms of the middle part that are kept; null if none are. */
  readonly forms: CompressedForms | null
}

export interface AnswerBody {
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream
  /** Headers about the coding of the body. */
  readonly headers: Readonly<Record<string, string>>
}

const NO_HEADERS = {}
/** The response may differ for another Accept-Encoding (RFC 9110, 12.5.5). */
const VARIES = { vary: 'Accept-Encoding' }
const ENCODED = {
  zstd: { ...VARIES, 'content-encoding': 'zstd' },
  gzip: { ...VARIES, 'content-encoding': 'gzip' },
} as const

/**
 * Returns the body of a response, or null if the budget for unsent responses is exhausted. A
 * promise is returned only for a text that is compressed in a thread.
 */
export function answerBody(
  parts: AnswerText,
  transfers: Transfers,
  sender: Sender,
  compression: Compression | null,
): MaybePromise<AnswerBody | null> {
  if (compression === null || !isWorthwhile(parts)) {
    return plainAnswer(parts, transfers, sender, NO_HEADERS)
  }
  const { coding, forms } = compression
  if (coding === null) return plainAnswer(parts, transfers, sender, VARIES)
  const [, text] = parts
  let form = forms?.find(coding)
  if (form === undefined) {
    const isLong = text.length > SYNCHRONOUS_CHARACTERS_MAX
    if (isLong) return compressLater(parts, transfers, sender, { coding, forms })
    form = shorter(compressText(text, coding))
    forms?.keep(coding, form)
  }
  return form === null
    ? plainAnswer(parts, transfers, sender, VARIES)
    : encodedAnswer(parts, transfers, sender, form)
}

/** Returns whether the whole text has the least and at most the largest length to compress. */
function isWorthwhile(parts: AnswerText): boolean {
  const characters = charactersOf(parts)
  if (characters > COMPRESSED_BYTES_MAX - EDGES_BYTES_MAX) return false
  if (characters >= COMPRESSED_BYTES_MIN) return true
  if (characters * 3 < COMPRESSED_BYTES_MIN) return false
  return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0) >= COMPRESSED_BYTES_MIN
}

/** Returns null for a compressed form that is not shorter than its text. */
function shorter(form: CompressedText): CompressedText | null {
  const isShorter = form.blocks.length < form.length
  return isShorter && form.length <= COMPRESSED_BYTES_MAX - EDGES_BYTES_MAX ? form : null
}

/**
 * Compresses in a thread, and holds the memory of the text meanwhile. The text is sent as it is
 * while as many others are compressed as may be: compression must not delay an answer for long.
 */
function compressLater(
  parts: AnswerText,
  transfers: Transfers,
  sender: Sender,
  { coding, forms }: { readonly coding: ContentCoding; readonly forms: CompressedForms | null },
): MaybePromise<AnswerBody | null> {
  const end = transfers.compressions.begin()
  if (end === null) return plainAnswer(parts, transfers, sender, VARIES)
  const reservation = reserve(parts, charactersOf(parts), transfers.answers, holderOf(sender))
  if (reservation === null) {
    end()
    return null
  }
  return compressInThread(parts[1], coding)
    .then((compressed) => {
      const form = shorter(compressed)
      forms?.keep(coding, form)
      return form
    })
    .finally(() => {
      end()
      reservation.release()
    })
    .then((form) =>
      form === null
        ? plainAnswer(parts, transfers, sender, VARIES)
        : encodedAnswer(parts, transfers, sender, form),
    )
}

/** Budgets count the uncompressed text of a body that its peer may hold up. */
function encodedAnswer(
  parts: AnswerText,
  transfers: Transfers,
  sender: Sender,
  form: CompressedText,
): AnswerBody | null {
  const [before, , after] = parts
  const bytes = encodeAround(before, form, after)
  const headers = ENCODED[form.coding]
  if (bytes.length <= GATHERED_BYTES) return { body: bytes, headers }
  if (bytes.length <= BUFFERED_CHARACTERS) return { body: streamAtOnce(bytes), headers }
  const { answers } = transfers
  const reservation = reserve(parts, charactersOf(parts), answers, holderOf(sender))
  if (reservation === null) return null
  const body = streamInPieces(piecesOfBytes(bytes), bytes.length, transfers, reservation)
  return { body, headers }
}

/**
 * Returns the uncompressed text. The runtime sends a string over 14 KiB in about 35 system calls:
 * 6,400 responses of 30 KB a second. It sends a stream of one chunk in two: 58,000 a second.
 */
function plainAnswer(
  parts: AnswerText,
  transfers: Transfers,
  sender: Sender,
  headers: AnswerBody['headers'],
): AnswerBody | null {
  const characters = charactersOf(parts)
  if (characters > BUFFERED_CHARACTERS) {
    const reservation = reserve(parts, characters, transfers.answers, holderOf(sender))
    if (reservation === null) return null
    return { body: streamInPieces(piecesOf(parts), characters, transfers, reservation), headers }
  }
  const text = parts.join('')
  const isGathered =
    characters * 3 <= GATHERED_BYTES ||
    (characters <= GATHERED_BYTES && Buffer.byteLength(text) <= GATHERED_BYTES)
  return { body: isGathered ? text : streamAtOnce(text), headers }
}

/** Returns the body of a response of bytes, or null if the budget is exhausted. */
export function answerBytes(
  bytes: Uint8Array<ArrayBuffer>,
  transfers: Transfers,
  sender: Sender,
): AnswerBody | null {
  const headers = NO_HEADERS
  if (bytes.length <= GATHERED_BYTES) return { body: bytes, headers }
  if (bytes.length <= BUFFERED_CHARACTERS) return { body: streamAtOnce(bytes), headers }
  const reservation = transfers.answers.reserve(bytes.length, holderOf(sender))
  if (reservation === null) return null
  const pieces = piecesOfBytes(bytes)
  return { body: streamInPieces(pieces, bytes.length, transfers, reservation), headers }
}

function charactersOf([before, text, after]: AnswerText): number {
  return before.length + text.length + after.length
}

function streamAtOnce(content: string | Uint8Array<ArrayBuffer>): ReadableStream {
  return directStream((controller) => {
    controller.write(content)
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

/** Streams a body in pieces, and waits for the peer between them. */
function streamInPieces(
  pieces: Iterable<string | Uint8Array<ArrayBuffer>>,
  length: number,
  { pace }: Transfers,
  reservation: Reservation,
): ReadableStream {
  return directStream(async (controller) => {
    // An error resets the connection; a regular end would make the response look complete.
    const abort = () => controller.close(new Error('the peer read the response too slowly'))
    const transfer = pace.begin(abort, length)
    try {
      for (const piece of pieces) {
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

/**
 * Yields the text without joining its parts: a long part is mostly a cached result, and to copy it
 * for each response would take milliseconds.
 */
function* piecesOf(parts: readonly string[]): Generator<string> {
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const end = pieceEnd(part, at + PIECE_CHARACTERS)
      yield part.slice(at, end)
      at = end
    }
  }
}

function* piecesOfBytes(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += PIECE_CHARACTERS) {
    yield bytes.subarray(at, at + PIECE_CHARACTERS)
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
