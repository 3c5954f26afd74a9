/** CopyObject: stores existing bytes under another key, with new headers or the old ones. */
import { storeContent } from '../../../../product/files/store.ts'
import { checksumElements } from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { decodePart, requireKey } from '../requests.ts'
import { requireAccess } from '../signature/authentication.ts'
import { element, xmlResponse } from '../xml/writer.ts'
import { checkRead, writeCondition } from './conditions.ts'
import { requireObject } from './downloads.ts'
import { entityTag, isoTime, parseObjectHeaders } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'

const SOURCE_CONDITIONS = 'x-amz-copy-source-'

/** Returns the source of a copy. Throws InvalidArgument, AccessDenied, NoSuchKey. */
export async function copySource(call: ObjectCall) {
  const { request, caller } = call
  const header = request.headers.get('x-amz-copy-source')!
  const source = decodePart(header.replace(/^\//, ''), false)
  const slash = source.indexOf('/')
  if (slash < 1 || header.includes('?')) throw new S3Fault('InvalidArgument', 'x-amz-copy-source')
  const [bucket, key] = [source.slice(0, slash), source.slice(slash + 1)]
  requireKey(key)
  requireAccess(caller, bucket, 'read')
  const file = await requireObject({ ...call, bucket, key })
  if (checkRead(request.headers, file, SOURCE_CONDITIONS)) throw new S3Fault('PreconditionFailed')
  return { bucket, key, file }
}

export async function copyObject(call: ObjectCall): Promise<Response> {
  const { gateway, request, bucket, key } = call
  const source = await copySource(call)
  const given = parseObjectHeaders(request.headers)
  const directive = request.headers.get('x-amz-metadata-directive') ?? 'COPY'
  if (directive !== 'COPY' && directive !== 'REPLACE') {
    throw new S3Fault('InvalidArgument', 'x-amz-metadata-directive')
  }
  if (directive === 'COPY' && source.bucket === bucket && source.key === key) {
    throw new S3Fault('InvalidRequest', 'a copy of an object to itself changes its metadata')
  }
  const { file } = source
  const { sha256, etag, partSizes, checksums } = file
  const kept = directive === 'COPY' ? file : given
  const object = { bucket, key, contentType: kept.contentType, headers: kept.headers, etag }
  const requireReplaceable = writeCondition(request.headers)
  const stored = await storeContent(
    gateway.files,
    { sha256, size: Number(file.size) },
    // A copy keeps the entity tag, so it also keeps the parts that the tag counts.
    { ...object, partSizes, checksums, uploadId: null, requireReplaceable },
    // The source is durable. A concurrent deletion removes its bytes only some time later.
    {
      makeDurable: async () => {
        await requireObject({ ...call, bucket: source.bucket, key: source.key })
      },
    },
  )
  const fields = [
    element('ETag', entityTag(stored)),
    element('LastModified', isoTime(stored)),
    ...checksumElements(stored.checksums, { withType: true }),
  ]
  return xmlResponse(element('CopyObjectResult', fields, true))
}
