/** ListParts and ListMultipartUploads. */
import type { MultipartDocument } from '../../../../engine/files/multipart-documents.ts'
import { listOpenMultiparts, listPartsOf } from '../../../../product/files/multipart.ts'
import { commonPrefix, compareKeys } from '../../../../product/files/objects.ts'
import { PARTS_MAX } from '../../../../value/files/files.ts'
import { checksumElements, parseAlgorithm, protocolNames } from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { uriEncodePath } from '../requests.ts'
import { element, type XmlNode, xmlResponse } from '../xml/writer.ts'
import { ownerElement, parseCount } from './listing.ts'
import { requireUpload, textFields } from './multipart.ts'
import { isoTime } from './object-headers.ts'
import type { BucketCall, ObjectCall } from './operation.ts'

const PAGE_MAX = 1_000

export async function listUploadParts(call: ObjectCall): Promise<Response> {
  const { gateway, bucket, key, query } = call
  const upload = await requireUpload(call)
  const limit = parseCount(query.get('max-parts'), PAGE_MAX)
  const after = parseCount(query.get('part-number-marker') ?? '0', PARTS_MAX)
  const page = { after, limit: limit + 1 }
  const found = await listPartsOf(gateway.files, upload.multipartId, page)
  const parts = found.slice(0, limit)
  const fields = textFields({
    Bucket: bucket,
    Key: key,
    UploadId: upload.multipartId,
    StorageClass: 'STANDARD',
    PartNumberMarker: String(after),
    MaxParts: String(limit),
    NextPartNumberMarker: String(parts.at(-1)?.number ?? after),
    IsTruncated: String(found.length > limit),
    ...declaredFields(upload),
  })
  const entries = parts.map((part) => {
    const texts = { ETag: `"${part.etag}"`, LastModified: isoTime(part), Size: String(part.size) }
    const checksums = checksumElements(part.checksums, { withType: false })
    const number = { PartNumber: String(part.number) }
    return element('Part', [...textFields({ ...number, ...texts }), ...checksums])
  })
  const owners = [ownerElement('Initiator'), ownerElement('Owner')]
  return xmlResponse(element('ListPartsResult', [...fields, ...owners, ...entries], true))
}

function declaredFields({ checksum, isComposite = false }: MultipartDocument) {
  if (checksum === undefined) return {}
  const { name, type } = protocolNames({ algorithm: parseAlgorithm(checksum), isComposite })
  return { ChecksumAlgorithm: name, ChecksumType: type }
}

/** An entry of the list: one upload, or the common prefix of several. */
type Entry =
  | { readonly name: string; readonly upload: MultipartDocument }
  | { readonly name: string; readonly upload: null }

interface UploadListing {
  readonly prefix: string
  readonly delimiter: string | null
  readonly keyMarker: string
  readonly idMarker: string
}

/** Lists unfinished uploads, and common prefixes of their keys, in pages by key and ID. */
export async function listUploads({ gateway, bucket, query }: BucketCall): Promise<Response> {
  const encodingType = query.get('encoding-type')
  if (encodingType !== undefined && encodingType !== 'url') {
    throw new S3Fault('InvalidArgument', 'encoding-type')
  }
  const encode = encodingType === undefined ? (text: string) => text : uriEncodePath
  const listing: UploadListing = {
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') || null,
    keyMarker: query.get('key-marker') ?? '',
    idMarker: query.get('upload-id-marker') ?? '',
  }
  const { prefix, delimiter, keyMarker, idMarker } = listing
  const limit = parseCount(query.get('max-uploads'), PAGE_MAX)
  const uploads = await listOpenMultiparts(gateway.files, { bucket, prefix })
  const rest = entriesAfter(uploads, listing)
  const page = rest.slice(0, limit)
  const last = rest.length > limit ? page.at(-1) : undefined
  const fields = textFields({
    Bucket: bucket,
    Prefix: encode(prefix),
    MaxUploads: String(limit),
    ...(delimiter !== null && { Delimiter: encode(delimiter) }),
    KeyMarker: encode(keyMarker),
    UploadIdMarker: idMarker,
    ...(encodingType !== undefined && { EncodingType: encodingType }),
    ...(last && { NextKeyMarker: encode(last.name) }),
    ...(last?.upload && { NextUploadIdMarker: last.upload.multipartId }),
    IsTruncated: String(last !== undefined),
  })
  const entries = page.map((entry) => entryElement(entry, encode))
  return xmlResponse(element('ListMultipartUploadsResult', [...fields, ...entries], true))
}

/**
 * Returns the entries after the markers. A key marker without an ID skips all uploads of the key; a
 * common prefix skips all its keys.
 */
function entriesAfter(uploads: readonly MultipartDocument[], listing: UploadListing): Entry[] {
  const { prefix, delimiter, keyMarker, idMarker } = listing
  const entries: Entry[] = []
  for (const upload of uploads) {
    const { key, multipartId } = upload
    const order = compareKeys(key, keyMarker)
    if (order < 0 || (order === 0 && (idMarker === '' || multipartId <= idMarker))) continue
    const common = commonPrefix(key, prefix, delimiter)
    if (common === null) entries.push({ name: key, upload })
    else if (common !== keyMarker && entries.at(-1)?.name !== common) {
      entries.push({ name: common, upload: null })
    }
  }
  return entries
}

function entryElement({ name, upload }: Entry, encode: (text: string) => string): XmlNode {
  if (upload === null) return element('CommonPrefixes', textFields({ Prefix: encode(name) }))
  const names = { Key: encode(name), UploadId: upload.multipartId, StorageClass: 'STANDARD' }
  const texts = textFields({ ...names, Initiated: isoTime(upload) })
  return element('Upload', [...texts, ownerElement('Initiator'), ownerElement('Owner')])
}
