/**
 * Responses whose body is a stream of a known length, as the bytes of an S3-compatible store are.
 * The runtime would send such a body without its length, so the listener sends it.
 */

const streams = new WeakMap<Response, ReadableStream<Uint8Array>>()

/** Returns a response with these bytes and their length. */
export function sizedResponse(
  body: Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  { length, status, headers }: SizedOptions,
): Response {
  headers.set('content-length', String(length))
  const response = new Response(body, { status, headers })
  if (body instanceof ReadableStream) streams.set(response, body)
  return response
}

interface SizedOptions {
  readonly length: number
  readonly status: number
  readonly headers: Headers
}

/** Returns the body if it is a stream of the length in the header; otherwise null. */
export function sizedStreamOf(response: Response): ReadableStream<Uint8Array> | null {
  return streams.get(response) ?? null
}
