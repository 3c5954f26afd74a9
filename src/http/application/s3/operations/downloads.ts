/** GetObject and HeadObject. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { openBytes } from '../../../../product/files/downloads.ts'
import { readObject } from '../../../../product/files/objects.ts'
import { partsOfSizes } from '../../../../value/files/part-sizes.ts'
import { allowsRange, requestedRange } from '../../../ranges.ts'
import { namedResponse } from '../../../transfers/named-bytes.ts'
import { sizedResponse } from '../../../transfers/sized-streams.ts'
import { checksumHeaders } from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { checkRead } from './conditions.ts'
import { downloadHeaders, entityTag } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'
import { parsePartNumber } from './part-numbers.ts'

/** Sends an object. Throws NoSuchKey. */
export async function requireObject({
  gateway,
  bucket,
  key,
}: Omit<ObjectCall, 'query'>): Promise<FileDocument> {
  const found = await readObject(gateway.files, bucket, key)
  if (found === null) throw new S3Fault('NoSuchKey')
  return found
}

export async function getObject(call: ObjectCall): Promise<Response> {
  const { request, gateway, incoming, query } = call
  const number = query.has('partNumber') ? parsePartNumber(query) : null
  if (number !== null && request.headers.has('range')) {
    throw new S3Fault('InvalidRequest', 'a range and a partNumber')
  }
  const file = await requireObject(call)
  const headers = downloadHeaders(file, query)
  if (checkRead(request.headers, file)) return new Response(null, { status: 304, headers })
  const size = Number(file.size)
  const slice = number === null ? requestedSlice(request, file) : partOf(file, number, headers)
  const { start, end } = slice ?? { start: 0, end: size }
  if (slice === null && wantsChecksum(call)) {
    for (const [name, value] of Object.entries(checksumHeaders(file.checksums))) {
      headers.set(name, value)
    }
  }
  // An empty part has no range that could be sent.
  const isPartial = slice !== null && end > start
  if (isPartial) headers.set('content-range', `bytes ${start}-${end - 1}/${size}`)
  const status = isPartial ? 206 : 200
  if (request.method === 'HEAD') {
    headers.set('content-length', String(end - start))
    return new Response(null, { status, headers })
  }
  const bytes = { start, end }
  const isNamed = incoming.binding.namesBytes === true
  const body = isNamed ? null : await openBytes(gateway.files, file, bytes)
  gateway.counts.transferred('downloaded', end - start)
  if (body === null) {
    return namedResponse(
      { content: { sha256: file.sha256, size }, slice: bytes },
      { status, headers },
    )
  }
  return sizedResponse(body, { length: end - start, status, headers })
}

/** Returns whether the client verifies checksums. Signed URLs have the header as a parameter. */
function wantsChecksum({ request: { headers }, query }: ObjectCall): boolean {
  const name = 'x-amz-checksum-mode'
  return (headers.get(name) ?? query.get(name))?.toUpperCase() === 'ENABLED'
}

/** Returns the requested range; null for the whole object. Throws InvalidRange. */
function requestedSlice({ headers }: Request, file: FileDocument) {
  if (!allowsRange(headers.get('if-range'), entityTag(file))) return null
  const range = requestedRange(headers.get('range'), Number(file.size))
  if (range === 'unsatisfiable') throw new S3Fault('InvalidRange')
  return range
}

/**
 * Returns the range of a part by its position from 1, not by the number of its upload: clients
 * read parts from 1 to the count, which is added to `headers`. As in S3, a file of one part has no
 * count. Throws InvalidPartNumber.
 */
function partOf({ partSizes, size }: FileDocument, number: number, headers: Headers) {
  const parts =
    partSizes === undefined ? [{ start: 0, end: Number(size) }] : partsOfSizes(partSizes)
  const part = parts[number - 1]
  if (part === undefined) throw new S3Fault('InvalidPartNumber')
  if (partSizes !== undefined) headers.set('x-amz-mp-parts-count', String(parts.length))
  return part
}
