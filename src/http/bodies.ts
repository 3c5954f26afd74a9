/** Request bodies, read whole and within a bound that holds for declared and chunked ones alike. */
import { Fault } from '../errors/fault.ts'
import type { SurfaceCodes } from './errors.ts'

/** Throws the surface's too-large or invalid code. `bytesMax` 0 means that no body is allowed. */
export async function readBody(
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
    return length === 0 ? new Uint8Array(0) : new Uint8Array(await request.arrayBuffer())
  }
  return request.body === null ? new Uint8Array(0) : readChunks(request.body, bytesMax, codes)
}

/** Reads a stream of unknown length. */
async function readChunks(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
  codes: SurfaceCodes,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > bytesMax) throw tooLarge(bytesMax, codes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

function tooLarge(bytesMax: number, codes: SurfaceCodes): Fault {
  return bytesMax === 0
    ? new Fault(codes.invalid, { violations: [{ path: 'body', rule: 'no body' }] })
    : new Fault(codes.tooLarge, { detail: `body over ${bytesMax} bytes` })
}
