/** DeleteObject and DeleteObjects. */
import {
  deleteFile,
  type FileDocument,
  findObject,
} from '../../../../engine/files/file-documents.ts'
import { deleteObject } from '../../../../product/files/objects.ts'
import { isObjectKey } from '../../../../value/files/files.ts'
import { readS3Body } from '../bodies/bodies.ts'
import { type S3Code, S3Fault, s3MessageOf } from '../errors.ts'
import { childText, readXml, type XmlElement } from '../xml/reader.ts'
import { element, xmlResponse } from '../xml/writer.ts'
import { deleteCondition, hasTag } from './conditions.ts'
import type { BucketCall, ObjectCall } from './operation.ts'

/** Objects of one DeleteObjects, as in S3. */
const KEYS_MAX = 1_000

/** Deletes an object. Responds 204 even if none exists, unless the request has a condition. */
export async function deleteOne({ gateway, bucket, key, request }: ObjectCall): Promise<Response> {
  const requireDeletable = deleteCondition(request.headers)
  await deleteObject(gateway.files, { bucket, key, requireDeletable })
  return new Response(null, { status: 204 })
}

/** One object that a request names for deletion. */
interface Deletion {
  readonly key: string
  /** The entity tag that the object must have; null deletes any object, and accepts none. */
  readonly etag: string | null
  /** The failure that is known before the look-up. */
  readonly rejection: S3Code | null
}

/**
 * Deletes up to 1,000 objects in one commit: all whose conditions hold, or none where the commit
 * fails.
 */
export async function deleteMany(call: BucketCall): Promise<Response> {
  const { gateway, incoming, caller, bucket } = call
  const root = readXml(await readS3Body(gateway, incoming, caller))
  const objects = root.children.filter(({ name }) => name === 'Object')
  if (root.name !== 'Delete' || objects.length === 0 || objects.length > KEYS_MAX) {
    throw new S3Fault('MalformedXML', `Delete with 1 to ${KEYS_MAX} objects`)
  }
  const isQuiet = childText(root, 'Quiet') === 'true'
  const deletions = objects.map(parseDeletion)
  const failures = await gateway.files.documents.change(async (transaction) => {
    // Conditions apply to the objects before the request, even if it names an object twice.
    const found: (FileDocument | null)[] = []
    for (const { key, rejection } of deletions) {
      found.push(rejection === null ? await findObject(transaction, bucket, key) : null)
    }
    const codes = deletions.map(({ etag, rejection }, i): S3Code | null => {
      const file = found[i] ?? null
      if (rejection !== null || etag === null) return rejection
      if (file === null) return 'NoSuchKey'
      return hasTag(file, etag) ? null : 'PreconditionFailed'
    })
    const ids = found.flatMap((file, i) => (file === null || codes[i] !== null ? [] : file.fileId))
    for (const fileId of new Set(ids)) await deleteFile(transaction, fileId)
    return codes
  })
  const results = deletions.flatMap(({ key: name }, i) => {
    const key = element('Key', name)
    const code = failures[i] ?? null
    if (code === null) return isQuiet ? [] : [element('Deleted', [key])]
    const message = element('Message', s3MessageOf(code))
    return [element('Error', [key, element('Code', code), message])]
  })
  return xmlResponse(element('DeleteResult', results, true))
}

/** Elements of an object that are unsupported conditions and must not be ignored. */
const OTHER_CONDITIONS = ['LastModifiedTime', 'Size']

function parseDeletion(object: XmlElement): Deletion {
  const key = childText(object, 'Key') ?? ''
  const isVersion = (childText(object, 'VersionId') ?? 'null') !== 'null'
  const isOther = OTHER_CONDITIONS.some((name) => childText(object, name) !== null)
  const rejection = !isObjectKey(key)
    ? 'InvalidArgument'
    : isVersion || isOther
      ? 'NotImplemented'
      : null
  return { key, etag: childText(object, 'ETag'), rejection }
}
