/** Request bodies, declared and chunked ones, within bounds of size, memory and time. */
import { Fault } from '../errors/fault.ts'
import { isJson } from '../wire/media-types.ts'
import type { SurfaceCodes } from './errors.ts'
import { discard, type Reservation } from './transfers/memory-budget.ts'
import { holderOf, type Sender } from './transfers/senders.ts'
import type { TransferPace } from './transfers/transfer-pace.ts'
import type { Transfers } from './transfers/transfers.ts'

const NO_BODY = Promise.resolve(new Uint8Array(0))

/**
 * A body up to this size needs no room in the budget of unfinished bodies: it takes no more than
 * the head of a request may, and small calls are answered however full the budget is.
 */
const SMALL_BODY_BYTES = 16 * 1024

/**
 * A body up to this size comes with its head, mostly in one packet, and is left to the runtime,
 * which cuts off what is not whole after an idle timeout. To watch it would cost a call 2 us.
 */
const UNWATCHED_BODY_BYTES = 4 * 1024

/** Throws the surface's media type code for a body that is no JSON as it is. */
export function requireJson({ headers }: Request, codes: SurfaceCodes): void {
  if (!isJson(headers.get('content-type'))) {
    throw new Fault(codes.mediaType, { detail: 'content-type: application/json' })
  }
  if (isPacked(headers)) throw new Fault(codes.mediaType, { detail: 'content-encoding: identity' })
}

/** Whether a body is compressed. None is unpacked, as its length would say nothing of its size. */
export function isPacked(headers: Headers): boolean {
  const encoding = headers.get('content-encoding')
  return encoding !== null && encoding.toLowerCase() !== 'identity'
}

/**
 * Throws, or rejects with, the surface's too-large, invalid or busy code. `bytesMax` 0 means that
 * no body is allowed.
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
    // The HTTP parser enforces a declared length, so it needs no stream: that would cost 2 us.
    if (length <= UNWATCHED_BODY_BYTES) return request.bytes()
    if (length <= SMALL_BODY_BYTES) {
      return transfers.pace.limit(request.bytes(), length, () => tooSlow(codes))
    }
    const memory = reserve(length, codes, transfers, sender)
    const chunks = boundedChunks(request.body!, bytesMax, codes, transfers.pace)
    return gathered(chunks, memory.allocate(length))
  }
  if (request.body === null) return NO_BODY
  const chunks = boundedChunks(request.body, bytesMax, codes, transfers.pace)
  const more = () => reserve(bytesMax, codes, transfers, sender).allocate(bytesMax)
  return gathered(chunks, new Uint8Array(SMALL_BODY_BYTES), more)
}

/** Copies a body into `target`, or into what `more` returns once `target` is too short. */
async function gathered(
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
    throw new Fault(codes.busy, { detail: 'unfinished bodies have no room for another' })
  }
  sender.bodyMemory = memory
  return memory
}

/** Bounds a body that is never whole in memory, so that it needs no room in the budget. */
export function streamBody(
  { headers, body }: Request,
  bytesMax: number,
  codes: SurfaceCodes,
  pace: TransferPace,
): AsyncIterable<Uint8Array> {
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw tooLarge(bytesMax, codes)
  const stream = body ?? new ReadableStream({ start: (end) => end.close() })
  return boundedChunks(stream, bytesMax, codes, pace)
}

/** Only the time that is waited for the peer counts against it. */
async function* boundedChunks(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  codes: SurfaceCodes,
  pace: TransferPace,
): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  // A pending read of a stream that is cancelled ends as one at its end does.
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
