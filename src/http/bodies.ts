/** Reads request bodies, with a declared length or chunked, within size, memory and time limits. */
import { Fault } from '../errors/fault.ts'
import { discard, type Reservation } from '../system/memory/memory-budget.ts'
import { isJson } from '../wire/media-types.ts'
import type { SurfaceCodes } from './errors.ts'
import { holderOf, type Sender } from './transfers/senders.ts'
import type { TransferPace } from './transfers/transfer-pace.ts'
import type { TransferTurns } from './transfers/transfer-turns.ts'
import type { Transfers } from './transfers/transfers.ts'

const NO_BODY = Promise.resolve(new Uint8Array(0))

/**
 * A body up to this size is exempt from the memory budget for unfinished bodies, so that small
 * calls succeed even if the budget is exhausted. It takes no more memory than the head of a request
 * may.
 */
const SMALL_BODY_BYTES = 16 * 1024

/**
 * A body up to this size arrives with its head, mostly in one packet. Its rate is not watched,
 * which would cost 2 us for each call: the runtime closes the connection after an idle timeout.
 */
const UNWATCHED_BODY_BYTES = 4 * 1024

/**
 * A body up to this size takes no turns between calls: it is no longer than the arguments of one.
 */
const UNPACED_BODY_BYTES = 64 * 1024

/** Throws the surface's media type code unless the body is uncompressed JSON. */
export function requireJson({ headers }: Request, codes: SurfaceCodes): void {
  if (!isJson(headers.get('content-type'))) {
    throw new Fault(codes.mediaType, { detail: 'content-type: application/json' })
  }
  if (isCompressed(headers))
    throw new Fault(codes.mediaType, { detail: 'content-encoding: identity' })
}

/** Returns whether a body is compressed. Such bodies are rejected: their real size is unknown. */
export function isCompressed(headers: Headers): boolean {
  const encoding = headers.get('content-encoding')
  return encoding !== null && encoding.toLowerCase() !== 'identity'
}

/**
 * Reads a whole body. Throws, or rejects with, the surface's too-large, invalid or busy code. With
 * `bytesMax` 0 no body is allowed.
 */
export function readBody(
  request: Request,
  bytesMax: number,
  codes: SurfaceCodes,
  transfers: Transfers,
  sender: Sender,
): Promise<Uint8Array> {
  const { headers } = request
  const declared = headers.get('content-length')
  if (declared !== null) {
    const length = Number(declared)
    if (length > bytesMax) throw tooLarge(bytesMax, codes)
    if (length === 0) return NO_BODY
    // The HTTP parser enforces a declared length. A stream would check it again and cost 2 us.
    if (length <= UNWATCHED_BODY_BYTES) return request.bytes()
    if (length <= SMALL_BODY_BYTES) {
      return transfers.pace.limit(request.bytes(), length, () => tooSlow(codes))
    }
    const memory = reserve(length, codes, transfers, sender)
    const chunks = boundedChunks(request.body!, bytesMax, codes, transfers.pace)
    return collect(chunks, memory.allocate(length))
  }
  if (request.body === null) return NO_BODY
  const chunks = boundedChunks(request.body, bytesMax, codes, transfers.pace)
  const more = () => reserve(bytesMax, codes, transfers, sender).allocate(bytesMax)
  return collect(chunks, new Uint8Array(SMALL_BODY_BYTES), more)
}

/** Copies a body into `target`, or into the buffer that `more` returns once `target` is full. */
async function collect(
  chunks: AsyncIterable<Uint8Array>,
  target: Uint8Array,
  more?: () => Uint8Array,
): Promise<Uint8Array> {
  let bytes = target
  let size = 0
  for await (const chunk of chunks) {
    if (size + chunk.length > bytes.length && more !== undefined) {
      const longer = more()
      longer.set(bytes.subarray(0, size))
      bytes = longer
    }
    bytes.set(chunk, size)
    size += chunk.length
    discard(chunk)
  }
  return bytes.subarray(0, size)
}

function reserve(
  bytes: number,
  codes: SurfaceCodes,
  { bodies }: Transfers,
  sender: Sender,
): Reservation {
  const memory = bodies.reserve(bytes, holderOf(sender))
  if (memory === null) {
    throw new Fault(codes.busy, { detail: 'the memory for unfinished bodies is exhausted' })
  }
  sender.bodyMemory = memory
  return memory
}

/**
 * Streams a body up to `bytesMax`. Memory never holds all of it, so no budget is charged. With
 * `turns`, a long body takes its turns between calls.
 */
export function streamBody(
  { headers, body }: Request,
  bytesMax: number,
  codes: SurfaceCodes,
  pace: TransferPace,
  turns?: TransferTurns,
): AsyncIterable<Uint8Array> {
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw tooLarge(bytesMax, codes)
  const stream = body ?? new ReadableStream({ start: (end) => end.close() })
  return boundedChunks(stream, bytesMax, codes, pace, turns)
}

/** Yields the chunks. Only the time spent waiting for the peer counts against its rate. */
async function* boundedChunks(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  codes: SurfaceCodes,
  pace: TransferPace,
  turns?: TransferTurns,
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  // A pending read of a cancelled stream resolves as at its end.
  const cancel = () => void reader.cancel().catch(() => undefined)
  const transfer = pace.begin(cancel)
  let size = 0
  try {
    for (;;) {
      transfer.wait()
      const { done, value } = await reader.read()
      if (transfer.isSlow) throw tooSlow(codes)
      if (done) return
      transfer.moved(value.length)
      size += value.length
      if (size > bytesMax) throw tooLarge(bytesMax, codes)
      yield value
      if (size > UNPACED_BODY_BYTES) await turns?.take(value.length)
    }
  } finally {
    transfer.end()
    cancel()
  }
}

function tooLarge(bytesMax: number, codes: SurfaceCodes): Fault {
  return bytesMax === 0
    ? new Fault(codes.invalid, { violations: [{ path: 'body', rule: 'no body' }] })
    : new Fault(codes.tooLarge, { detail: `body over ${bytesMax} bytes` })
}

function tooSlow(codes: SurfaceCodes): Fault {
  return new Fault(codes.busy, { detail: 'the body arrived too slowly' })
}
