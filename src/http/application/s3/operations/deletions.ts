/** DeleteObject and DeleteObjects. */
import { deleteFile, findObject } from '../../../../engine/files/file-documents.ts'
import { deleteObject } from '../../../../product/files/objects.ts'
import { isObjectKey } from '../../../../value/files/files.ts'
import { readS3Body } from '../bodies/bodies.ts'
import { S3Fault } from '../errors.ts'
import { childText, readXml } from '../xml/reader.ts'
import { element, xmlResponse } from '../xml/writer.ts'
import type { BucketCall, ObjectCall } from './operation.ts'

const KEYS_MAX = 1_000

/** Answers 204 whether or not there was an object. */
export async function deleteOne({ gateway, bucket, key, request }: ObjectCall): Promise<Response> {
  if (request.headers.has('if-match')) throw new S3Fault('NotImplemented', 'If-Match of a delete')
  await deleteObject(gateway.files, bucket, key)
  return new Response(null, { status: 204 })
}

/** Deletes up to 1,000 objects in one commit: all of them, or none where it fails. */
export async function deleteMany(call: BucketCall): Promise<Response> {
  const { gateway, incoming, caller, bucket } = call
  const root = readXml(await readS3Body(gateway, incoming, caller))
  const objects = root.children.filter(({ name }) => name === 'Object')
  if (root.name !== 'Delete' || objects.length === 0 || objects.length > KEYS_MAX) {
    throw new S3Fault('MalformedXML', `Delete with 1 to ${KEYS_MAX} objects`)
  }
  const isQuiet = childText(root, 'Quiet') === 'true'
  const asked = objects.map((object) => ({
    key: childText(object, 'Key') ?? '',
    versionId: childText(object, 'VersionId') ?? 'null',
  }))
  const isDeletable = (each: (typeof asked)[number]) =>
    isObjectKey(each.key) && each.versionId === 'null'
  const keys = new Set(asked.filter(isDeletable).map(({ key }) => key))
  await gateway.files.documents.change(async (transaction) => {
    for (const key of keys) {
      const found = await findObject(transaction, bucket, key)
      if (found !== null) await deleteFile(transaction, found.fileId)
    }
  })
  const results = asked.flatMap((each) => {
    const key = element('Key', each.key)
    if (isDeletable(each)) return isQuiet ? [] : [element('Deleted', [key])]
    const code = isObjectKey(each.key) ? 'NotImplemented' : 'InvalidArgument'
    const message = 'A key of 1 to 1,024 bytes, without a version.'
    return [element('Error', [key, element('Code', code), element('Message', message)])]
  })
  return xmlResponse(element('DeleteResult', results, true))
}
