/**
 * Responses with the bytes of a stored file, or one range of them. Browsers do not execute these
 * bytes: each response is sandboxed, and an attachment unless the caller overrides the header.
 */
import type { FileDocument } from '../engine/files/file-documents.ts'
import { openBytes } from '../product/files/downloads.ts'
import type { FilePorts } from '../product/files/ports.ts'
import { allowsRange, isNotModified, requestedRange } from './ranges.ts'
import { namedResponse } from './transfers/named-bytes.ts'
import { sizedResponse } from './transfers/sized-streams.ts'

export interface AnswerOptions {
  /** The name that a browser saves the file under; null if the response suggests none. */
  readonly fileName: string | null
  /** Additional headers. They override those that this module sets. */
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes of one response; default: no bound. */
  readonly bytesMax?: number
  /** True if the response names the bytes, which another process sends; default: false. */
  readonly namesBytes?: boolean | undefined
  /** Opens the bytes that are sent. By default it opens them immediately. */
  readonly send?: <T>(bytes: number, open: () => Promise<T>) => Promise<T>
}

/**
 * Returns the response to GET or HEAD; `unsatisfiable` for an empty range, and `too-large`
 * for more than `bytesMax` bytes. Raises PRODUCT_CORRUPT and UNAVAILABLE.
 */
export async function fileAnswer(
  files: FilePorts,
  request: Pick<Request, 'method' | 'headers'>,
  file: FileDocument,
  options: AnswerOptions,
): Promise<Response | 'unsatisfiable' | 'too-large'> {
  const { bytesMax = Number.POSITIVE_INFINITY, send = openAtOnce } = options
  const size = Number(file.size)
  const tag = `"${file.sha256}"`
  const headers = headersOf(file, tag, options)
  if (isNotModified(request.headers.get('if-none-match'), tag)) {
    return new Response(null, { status: 304, headers })
  }
  if (request.method === 'HEAD') {
    headers.set('content-length', String(size))
    return new Response(null, { headers })
  }
  const range = allowsRange(request.headers.get('if-range'), tag)
    ? requestedRange(request.headers.get('range'), size)
    : null
  if (range === 'unsatisfiable') return range
  const { start, end } = range ?? { start: 0, end: size }
  if (end - start > bytesMax) return 'too-large'
  if (range !== null) headers.set('content-range', `bytes ${start}-${end - 1}/${size}`)
  const status = range === null ? 200 : 206
  const slice = { start, end }
  if (options.namesBytes) {
    return namedResponse({ content: { sha256: file.sha256, size }, slice }, { status, headers })
  }
  const body = await send(end - start, () => openBytes(files, file, slice))
  return sizedResponse(body, { length: end - start, status, headers })
}

function openAtOnce<T>(_: number, open: () => Promise<T>): Promise<T> {
  return open()
}

function headersOf(
  { fileId, contentType }: FileDocument,
  tag: string,
  { fileName, headers }: AnswerOptions,
): Headers {
  return new Headers({
    'content-type': contentType,
    etag: tag,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
    'content-disposition': disposition('attachment', fileName),
    'content-security-policy': 'sandbox',
    'x-service-file-id': fileId,
    ...headers,
  })
}

/** Returns Content-Disposition (RFC 6266): an ASCII name for old clients, and the exact name. */
export function disposition(kind: 'attachment' | 'inline', fileName: string | null): string {
  if (fileName === null) return kind
  const plain = fileName.replace(/[^\x20-\x7e]/g, '_').replace(/["\\%]/g, '_')
  const encoded = encodeURIComponent(fileName).replace(/['()*]/g, percentEncoded)
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
