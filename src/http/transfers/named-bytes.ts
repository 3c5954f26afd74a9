/**
 * Bytes of files that the main process names and an application process sends, which has the
 * connection: bytes that pass through both would be copied twice and arrive without their length.
 */

/** Header of a request whose response may name the bytes. */
export const TAKES_NAMED_BYTES = 'x-service-takes-named-bytes'
/** Header of a response without a body that names the bytes. */
export const NAMED_BYTES = 'x-service-named-bytes'

export interface NamedBytes {
  /** The address of the file and its length. */
  readonly content: { readonly sha256: string; readonly size: number }
  /** The part that is sent, without `end`. */
  readonly slice: { readonly start: number; readonly end: number }
}

/** Returns the response that names the bytes. Its other headers are those of the download. */
export function namedResponse(
  { content, slice }: NamedBytes,
  { status, headers }: { readonly status: number; readonly headers: Headers },
): Response {
  headers.set(NAMED_BYTES, [content.sha256, content.size, slice.start, slice.end].join(' '))
  return new Response(null, { status, headers })
}

/** Returns the bytes that the headers of a response name; null if they name none. */
export function namedBytesOf(headers: Headers): NamedBytes | null {
  const named = headers.get(NAMED_BYTES)
  if (named === null) return null
  const [sha256 = '', ...numbers] = named.split(' ')
  const [size = 0, start = 0, end = 0] = numbers.map(Number)
  return { content: { sha256, size }, slice: { start, end } }
}
