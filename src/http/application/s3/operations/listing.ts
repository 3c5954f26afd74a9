/** ListBuckets, ListObjects and ListObjectsV2. */

import { openContinuation, sealContinuation } from '../../../../product/files/list-tokens.ts'
import { keyAfter, listObjects, type ObjectList } from '../../../../product/files/objects.ts'
import { keyPrefixEnd } from '../../../../value/files/files.ts'
import { idMillis } from '../../../../value/ids.ts'
import { S3Fault } from '../errors.ts'
import { uriEncodePath } from '../requests.ts'
import { element, type XmlNode, xmlResponse } from '../xml/writer.ts'
import { entityTag, isoTime } from './object-headers.ts'
import type { BucketCall, S3Call } from './operation.ts'

/** Keys of one page, as in S3; clients read further pages. */
const KEYS_MAX = 1_000

/** Lists the bucket of the key, since a storage key belongs to one bucket. */
export function listBuckets({ caller: { bucketName, bucketId } }: S3Call): Response {
  const created = new Date(idMillis(bucketId)).toISOString()
  const bucket = element('Bucket', [element('Name', bucketName), element('CreationDate', created)])
  const fields = [ownerElement('Owner'), element('Buckets', [bucket])]
  return xmlResponse(element('ListAllMyBucketsResult', fields, true))
}

/** The owner of every object: objects have no individual owners. */
export function ownerElement(name: string): XmlNode {
  return element(name, [element('ID', 'svc'), element('DisplayName', 'svc')])
}

/** The parameters that both versions of ListObjects have. */
interface Listing {
  readonly prefix: string
  readonly delimiter: string
  readonly limit: number
  readonly encode: (text: string) => string
  readonly encodingType: readonly XmlNode[]
}

export async function listVersion2(call: BucketCall): Promise<Response> {
  const { gateway, bucket, query } = call
  const listing = parseListing(query)
  const startAfter = query.get('start-after') ?? ''
  const token = query.get('continuation-token')
  const name = JSON.stringify(['s3', bucket, listing.prefix, listing.delimiter])
  const opened = token === undefined ? null : openContinuation(gateway.files, name, token)
  if (token !== undefined && opened === null) {
    throw new S3Fault('InvalidArgument', 'the continuation token belongs to another list')
  }
  const from = opened ?? startOf(startAfter, listing)
  const page = await readPage(call, listing, from)
  const { encode } = listing
  const next = page.next === null ? null : sealContinuation(gateway.files, name, page.next)
  const withOwner = query.get('fetch-owner') === 'true'
  const fields = [
    ...commonFields(bucket, listing),
    element('KeyCount', page.objects.length + page.prefixes.length),
    element('IsTruncated', next !== null),
    ...(token === undefined ? [] : [element('ContinuationToken', token)]),
    ...(next === null ? [] : [element('NextContinuationToken', next)]),
    ...(startAfter === '' ? [] : [element('StartAfter', encode(startAfter))]),
    ...entriesOf(page, listing, withOwner),
  ]
  return xmlResponse(element('ListBucketResult', fields, true))
}

export async function listVersion1(call: BucketCall): Promise<Response> {
  const { bucket, query } = call
  const listing = parseListing(query)
  const { encode } = listing
  const marker = query.get('marker') ?? ''
  const page = await readPage(call, listing, startOf(marker, listing))
  const last = lastEntry(page)
  const isTruncated = page.next !== null
  const fields = [
    ...commonFields(bucket, listing),
    element('Marker', encode(marker)),
    element('IsTruncated', isTruncated),
    ...(isTruncated && last !== null ? [element('NextMarker', encode(last))] : []),
    ...entriesOf(page, listing, true),
  ]
  return xmlResponse(element('ListBucketResult', fields, true))
}

/** Returns the last key or common prefix of a page; null for an empty page. */
function lastEntry({ objects, prefixes }: ObjectList): string | null {
  const names = [objects.at(-1)?.key, prefixes.at(-1)].filter((name) => name !== undefined)
  const [first, second] = names
  if (first === undefined || second === undefined) return first ?? null
  return Buffer.compare(Buffer.from(first), Buffer.from(second)) > 0 ? first : second
}

/** Returns the first key after a marker. A marker that is a common prefix skips its keys. */
function startOf(marker: string, { prefix, delimiter }: Listing): string {
  if (marker === '') return ''
  const isPrefix = delimiter !== '' && marker.length > prefix.length && marker.endsWith(delimiter)
  const end = isPrefix && marker.startsWith(prefix) ? keyPrefixEnd(marker) : null
  return end ?? keyAfter(marker)
}

async function readPage(
  { gateway, bucket }: BucketCall,
  { prefix, delimiter, limit }: Listing,
  from: string,
): Promise<ObjectList> {
  if (limit === 0) return { objects: [], prefixes: [], next: null }
  const list = { bucket, prefix, delimiter: delimiter || null, from, limit }
  return listObjects(gateway.files, list)
}

function parseListing(query: ReadonlyMap<string, string>): Listing {
  const encodingType = query.get('encoding-type')
  if (encodingType !== undefined && encodingType !== 'url') {
    throw new S3Fault('InvalidArgument', 'encoding-type')
  }
  return {
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    limit: parseCount(query.get('max-keys'), KEYS_MAX),
    encode: encodingType === undefined ? (text) => text : uriEncodePath,
    encodingType: encodingType === undefined ? [] : [element('EncodingType', 'url')],
  }
}

/** Parses a number of entries, and reduces it to `max`. Throws InvalidArgument. */
export function parseCount(text: string | undefined, max: number): number {
  if (text === undefined || text === '') return max
  if (!/^\d{1,10}$/.test(text)) throw new S3Fault('InvalidArgument', 'a number of entries')
  return Math.min(Number(text), max)
}

function commonFields(bucket: string, listing: Listing): XmlNode[] {
  const { prefix, delimiter, limit, encode, encodingType } = listing
  return [
    element('Name', bucket),
    element('Prefix', encode(prefix)),
    ...(delimiter === '' ? [] : [element('Delimiter', encode(delimiter))]),
    element('MaxKeys', limit),
    ...encodingType,
  ]
}

function entriesOf(
  { objects, prefixes }: ObjectList,
  { encode }: Listing,
  withOwner: boolean,
): XmlNode[] {
  const contents = objects.map((file) =>
    element('Contents', [
      element('Key', encode(file.key)),
      element('LastModified', isoTime(file)),
      element('ETag', entityTag(file)),
      element('Size', String(file.size)),
      ...(withOwner ? [ownerElement('Owner')] : []),
      element('StorageClass', 'STANDARD'),
    ]),
  )
  const common = prefixes.map((prefix) =>
    element('CommonPrefixes', [element('Prefix', encode(prefix))]),
  )
  return [...contents, ...common]
}
