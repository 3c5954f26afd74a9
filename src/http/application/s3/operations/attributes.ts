/** GetObjectAttributes. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { PARTS_MAX } from '../../../../value/files/files.ts'
import { partsOfSizes } from '../../../../value/files/part-sizes.ts'
import { checksumElements } from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { element, type XmlNode, xmlResponse } from '../xml/writer.ts'
import { checkRead } from './conditions.ts'
import { requireObject } from './downloads.ts'
import { parseCount } from './listing.ts'
import { entityTag, lastModifiedMillis } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'

const PAGE_MAX = 1_000
const ATTRIBUTES = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize'] as const
type Attribute = (typeof ATTRIBUTES)[number]

/** Returns the requested attributes. The object may lack any of them. */
export async function getAttributes(call: ObjectCall): Promise<Response> {
  const { headers } = call.request
  const requested = parseAttributes(headers.get('x-amz-object-attributes'))
  const file = await requireObject(call)
  if (checkRead(headers, file)) return new Response(null, { status: 304 })
  const all: Record<Attribute, () => XmlNode[]> = {
    ETag: () => [element('ETag', entityTag(file).replaceAll('"', ''))],
    Checksum: () => {
      const checksums = checksumElements(file.checksums, { withType: true })
      return checksums.length === 0 ? [] : [element('Checksum', checksums)]
    },
    ObjectParts: () => objectParts(file, headers),
    StorageClass: () => [element('StorageClass', 'STANDARD')],
    ObjectSize: () => [element('ObjectSize', String(file.size))],
  }
  const fields = ATTRIBUTES.filter((each) => requested.has(each)).flatMap((each) => all[each]())
  const response = xmlResponse(element('GetObjectAttributesResponse', fields, true))
  response.headers.set('last-modified', new Date(lastModifiedMillis(file)).toUTCString())
  return response
}

/** Parses the names of attributes. Throws InvalidArgument. */
function parseAttributes(header: string | null): ReadonlySet<string> {
  const names = (header ?? '').split(',').map((name) => name.trim())
  const isKnown = (name: string) => (ATTRIBUTES as readonly string[]).includes(name)
  if (names.every(isKnown)) return new Set(names)
  throw new S3Fault('InvalidArgument', 'x-amz-object-attributes')
}

/** Returns a page of the sizes of the parts; nothing for an object that was stored at once. */
function objectParts({ partSizes }: FileDocument, headers: Headers): XmlNode[] {
  if (partSizes === undefined) return []
  const parts = partsOfSizes(partSizes)
  const after = parseCount(headers.get('x-amz-part-number-marker') ?? '0', PARTS_MAX)
  const limit = parseCount(headers.get('x-amz-max-parts') ?? undefined, PAGE_MAX)
  const page = parts.slice(after, after + limit)
  const last = after + page.length
  const fields = [
    element('PartsCount', parts.length),
    element('PartNumberMarker', after),
    element('NextPartNumberMarker', last),
    element('MaxParts', limit),
    element('IsTruncated', last < parts.length),
    ...page.map(({ start, end }, i) =>
      element('Part', [element('PartNumber', after + i + 1), element('Size', end - start)]),
    ),
  ]
  return [element('ObjectParts', fields)]
}
