/**
 * GET and HEAD /v1/files/downloads/{fileId}: the bytes of one file, or one range of them. No
 * browser executes what it gets here: it is an attachment in a sandbox.
 */
import { Fault } from '../../../errors/fault.ts'
import { findGranted, type GrantedFile, openBytes } from '../../../product/files/downloads.ts'
import { FILE_DOCUMENTS } from '../../../value/files/files.ts'
import { APPLICATION_CODES, errorResponse } from '../../errors.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import { requireId, withGrant } from './grants.ts'
import { allowsRange, type ByteRange, isNotModified, requestedRange } from './ranges.ts'

export async function sendDownload(
  gateway: Gateway,
  incoming: Incoming,
  fileId: string,
): Promise<Response> {
  const { request } = incoming
  requireId(FILE_DOCUMENTS, fileId)
  const file = await withGrant(gateway, incoming, (token) =>
    findGranted(gateway.files, fileId, token),
  )
  const size = Number(file.size)
  const tag = `"${file.sha256}"`
  const headers = headersOf(file, tag)
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
  if (range === 'unsatisfiable') return unsatisfiable(gateway, incoming, size)
  const { start, end } = range ?? { start: 0, end: size }
  const body = await openBytes(gateway.files, file, { start, end })
  gateway.counts.transferred('downloaded', end - start)
  headers.set('content-length', String(end - start))
  if (range !== null) headers.set('content-range', contentRange(range, size))
  return new Response(body, { status: range === null ? 200 : 206, headers })
}

/** Answers with the length of the file, so that the client can ask for a range inside of it. */
function unsatisfiable({ counts }: Gateway, { requestId }: Incoming, size: number): Response {
  const fault = new Fault('RANGE_INVALID')
  counts.failed(fault)
  const response = errorResponse(fault, requestId, APPLICATION_CODES)
  response.headers.set('content-range', `bytes */${size}`)
  return response
}

function contentRange({ start, end }: ByteRange, size: number): string {
  return `bytes ${start}-${end - 1}/${size}`
}

function headersOf({ fileId, contentType, fileName }: GrantedFile, tag: string): Headers {
  return new Headers({
    'content-type': contentType,
    etag: tag,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
    'content-disposition': disposition(fileName),
    'content-security-policy': 'sandbox',
    'x-service-file-id': fileId,
  })
}

/** RFC 6266: a name of ASCII for old clients, and the whole one. */
function disposition(fileName: string | null): string {
  if (fileName === null) return 'attachment'
  const plain = fileName.replace(/[^\x20-\x7e]/g, '_').replace(/["\\%]/g, '_')
  const encoded = encodeURIComponent(fileName).replace(/['()*]/g, percentEncoded)
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
