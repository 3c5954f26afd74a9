/** GetObject and HeadObject. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { openBytes } from '../../../../product/files/downloads.ts'
import { readObject } from '../../../../product/files/objects.ts'
import { allowsRange, requestedRange } from '../../files/ranges.ts'
import { S3Fault } from '../errors.ts'
import { checkRead } from './conditions.ts'
import { downloadHeaders, entityTag } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'

/** Throws NoSuchKey. */
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
  const { request, gateway, query } = call
  if (query.has('partNumber')) throw new S3Fault('NotImplemented', 'partNumber')
  const file = await requireObject(call)
  const headers = downloadHeaders(file, query)
  if (checkRead(request.headers, file)) return new Response(null, { status: 304, headers })
  const size = Number(file.size)
  const isAllowed = allowsRange(request.headers.get('if-range'), entityTag(file))
  const range = isAllowed ? requestedRange(request.headers.get('range'), size) : null
  if (range === 'unsatisfiable') throw new S3Fault('InvalidRange')
  const { start, end } = range ?? { start: 0, end: size }
  headers.set('content-length', String(end - start))
  if (range !== null) headers.set('content-range', `bytes ${start}-${end - 1}/${size}`)
  const status = range === null ? 200 : 206
  if (request.method === 'HEAD') return new Response(null, { status, headers })
  const body = await openBytes(gateway.files, file, { start, end })
  return new Response(body, { status, headers })
}
