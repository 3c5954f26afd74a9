/** Request bodies, within a bound that holds for declared and chunked ones alike. */
import { Fault } from '../errors/fault.ts'
import { isJson } from '../wire/media-types.ts'
import type { SurfaceCodes } from './errors.ts'

const NO_BODY = Promise.resolve(new Uint8Array(0))

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
 * Throws, or rejects with, the surface's too-large or invalid code. `bytesMax` 0 means that no body
 * is allowed.
 */
export function readBody(
  request: Request,
  bytesMax: number,
  codes: SurfaceCodes,
): Promise<Uint8Array> {
  const { headers } = request
  const declared = headers.get('content-length')
  if (declared !== null) {
    const length = Number(declared)
    if (length > bytesMax) throw tooLarge(bytesMax, codes)
    // The HTTP parser enforces a declared length, so it needs no stream: that would cost 2 us.
    return length === 0 ? NO_BODY : request.bytes()
  }
  return request.body === null ? NO_BODY : readChunks(request.body, bytesMax, codes)
}

/** Reads a stream of unknown length. */
async function readChunks(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  codes: SurfaceCodes,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of boundedChunks(stream, bytesMax, codes)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The same bound and the same codes for a body that is never whole in memory. */
export function streamBody(
  { headers, body }: Request,
  bytesMax: number,
  codes: SurfaceCodes,
): AsyncIterable<Uint8Array> {
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw tooLarge(bytesMax, codes)
  return boundedChunks(body ?? new ReadableStream({ start: (end) => end.close() }), bytesMax, codes)
}

async function* boundedChunks(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  codes: SurfaceCodes,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > bytesMax) throw tooLarge(bytesMax, codes)
    yield chunk
  }
}

function tooLarge(bytesMax: number, codes: SurfaceCodes): Fault {
  return bytesMax === 0
    ? new Fault(codes.invalid, { violations: [{ path: 'body', rule: 'no body' }] })
    : new Fault(codes.tooLarge, { detail: `body over ${bytesMax} bytes` })
}
