/** Multipart uploads: creation, parts, completion and abort. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import type {
  MultipartDocument,
  PartDocument,
} from '../../../../engine/files/multipart-documents.ts'
import { requireAdmission } from '../../../../product/buckets/admission.ts'
import { openBytes } from '../../../../product/files/downloads.ts'
import {
  abortMultipart,
  beginMultipart,
  findMultipart,
  listPartsOf,
  type MultipartAddress,
  type NewPart,
  readCompleted,
  removeParts,
  replacedPartBytes,
  storePart,
} from '../../../../product/files/multipart.ts'
import {
  completeMultipart,
  multipartTag,
  readContent,
} from '../../../../product/files/multipart-completion.ts'
import type { FilePorts } from '../../../../product/files/ports.ts'
import { reserveIn } from '../../../../product/files/store.ts'
import { checksumStream } from '../../../../system/checksums.ts'
import { inSlices } from '../../../../system/event-loop.ts'
import { FILE_BYTES_MAX, PART_BYTES_MIN, PARTS_MAX } from '../../../../value/files/files.ts'
import { readS3Body } from '../bodies/bodies.ts'
import {
  algorithmOfHeader,
  CHECKSUMS,
  type Checksums,
  checksumElements,
  checksumHeaders,
  declaredChecksum,
  parseAlgorithm,
  protocolNames,
  requireExpected,
  TYPE_HEADER,
  wantedChecksum,
} from '../checksums.ts'
import { S3Fault } from '../errors.ts'
import { childText, readXml, type XmlElement } from '../xml/reader.ts'
import { element, xmlResponse } from '../xml/writer.ts'
import { writeCondition } from './conditions.ts'
import { copySource } from './copies.ts'
import { entityTag, isoTime, parseObjectHeaders } from './object-headers.ts'
import type { ObjectCall } from './operation.ts'
import { parsePartNumber } from './part-numbers.ts'
import { receive, transferring } from './uploads.ts'

export async function createMultipart(call: ObjectCall): Promise<Response> {
  const { gateway, request, bucket, key } = call
  const stored = parseObjectHeaders(request.headers)
  const declared = declaredChecksum(request.headers)
  const { algorithm: checksum, isComposite } = declared ?? {}
  const upload = { bucket, key, ...stored, checksum, isComposite }
  const uploadId = await beginMultipart(gateway.files, upload)
  const fields = { Bucket: bucket, Key: key, UploadId: uploadId }
  const response = xmlResponse(element('InitiateMultipartUploadResult', textFields(fields), true))
  if (declared !== null) {
    const { name, type } = protocolNames(declared)
    response.headers.set('x-amz-checksum-algorithm', name)
    response.headers.set(TYPE_HEADER, type)
  }
  return response
}

export async function uploadPart(call: ObjectCall): Promise<Response> {
  const { gateway } = call
  const address = addressOf(call)
  const number = parsePartNumber(call.query)
  await requireUpload(call)
  return receive(call, {
    replacedBytes: () => replacedPartBytes(gateway.files, address, number),
    async store(staged, { md5, checksums, reservation }) {
      const part = { number, etag: md5, checksums, reservation }
      const isOpen = await storePart(gateway.files, staged, address, part)
      if (!isOpen) throw new S3Fault('NoSuchUpload')
      const { [TYPE_HEADER]: _, ...headers } = checksumHeaders(checksums)
      return new Response(null, { headers: { etag: `"${md5}"`, ...headers } })
    },
  })
}

/** Copies an object, or a range of it, to a part. */
export async function uploadPartCopy(call: ObjectCall): Promise<Response> {
  const { gateway, request, bucket } = call
  const { files } = gateway
  const number = parsePartNumber(call.query)
  const address = addressOf(call)
  await requireUpload(call)
  const { file } = await copySource(call)
  const slice = copiedRange(request.headers.get('x-amz-copy-source-range'), Number(file.size))
  const bytes = BigInt(slice.end - slice.start)
  const admitting = requireAdmission(files.buckets, bucket, bytes)
  const reservation = await reserveIn(files, admitting, () => {
    return replacedPartBytes(files, address, number)
  })
  try {
    reservation.extendTo(admitting, bytes)
    return await transferring(call, async () => {
      const etag = await copyPart(files, { file, slice, address, number, reservation })
      const at = isoTime({ createdAtMicros: gateway.system.nowMicros() })
      const fields = textFields({ ETag: `"${etag}"`, LastModified: at })
      return xmlResponse(element('CopyPartResult', fields, true))
    })
  } finally {
    reservation.release()
  }
}

interface CopiedPart extends Omit<NewPart, 'etag'> {
  readonly file: FileDocument
  readonly slice: ReturnType<typeof copiedRange>
  readonly address: MultipartAddress
}

/** Copies a slice of a file to a part and returns its entity tag. Throws NoSuchUpload. */
async function copyPart(
  files: FilePorts,
  { file, slice, address, ...part }: CopiedPart,
): Promise<string> {
  const staged = await files.blobs.stage(slice.end - slice.start)
  try {
    const md5 = checksumStream('md5')
    for await (const chunk of readContent(await openBytes(files, file, slice))) {
      await inSlices(chunk, (bytes) => void md5.update(bytes))
      await staged.write(chunk)
    }
    const etag = md5.digest().toHex()
    if (await storePart(files, staged, address, { ...part, etag })) return etag
    throw new S3Fault('NoSuchUpload')
  } finally {
    await staged.discard()
  }
}

/** Throws InvalidArgument and InvalidRange. */
function copiedRange(header: string | null, size: number) {
  if (header === null) return { start: 0, end: size }
  const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(header) ?? []
  if (first === undefined) throw new S3Fault('InvalidArgument', 'x-amz-copy-source-range')
  const [start, end] = [Number(first), Number(last) + 1]
  if (start >= end || end > size) throw new S3Fault('InvalidRange')
  return { start, end }
}

interface ListedPart {
  readonly number: number
  readonly etag: string
  readonly checksums: Checksums
}

export async function completeUpload(call: ObjectCall): Promise<Response> {
  const { gateway, incoming, request, caller } = call
  const { files } = gateway
  // The response has the checksums of the object.
  const ofBody = new Headers([...request.headers].filter(([name]) => !algorithmOfHeader(name)))
  const body = await readS3Body(gateway, incoming, caller, ofBody)
  const requireReplaceable = writeCondition(request.headers)
  const address = addressOf(call)
  const upload = await findMultipart(files, address)
  // A client repeats a request whose response was lost.
  const repeated = upload === null ? await readCompleted(files, address) : null
  if (upload === null && repeated === null) throw new S3Fault('NoSuchUpload')
  const listed = listedParts(body)
  const tag = multipartTag(listed.map(({ etag }) => etag))
  if (upload === null) {
    if (repeated?.etag !== tag) throw new S3Fault('NoSuchUpload')
    return completed(call, repeated)
  }
  const parts = await storedParts(call, listed)
  const closed = () => new S3Fault('NoSuchUpload')
  const wanted = wantedChecksum(request.headers, declaredOf(upload))
  const check = (value: string) => requireExpected(wanted!, value)
  const checksum = wanted === null ? null : { ...wanted, check }
  const file = await transferring(call, () =>
    completeMultipart(files, { upload, parts, requireReplaceable, checksum, closed }),
  )
  // The file exists. If this removal fails, the rest of the upload is removed later.
  removeParts(files, upload.multipartId).catch((error: unknown) => {
    gateway.log.warn('files.parts_left', { requestId: incoming.requestId, error })
  })
  return completed(call, file)
}

/** Returns the checksum that was declared at the creation of the upload; null for none. */
function declaredOf({ checksum, isComposite = false }: MultipartDocument) {
  return checksum === undefined ? null : { algorithm: parseAlgorithm(checksum), isComposite }
}

function completed({ bucket, key }: ObjectCall, file: FileDocument): Response {
  const fields = textFields({ Bucket: bucket, Key: key, ETag: entityTag(file) })
  const checksums = checksumElements(file.checksums, { withType: true })
  return xmlResponse(element('CompleteMultipartUploadResult', [...fields, ...checksums], true))
}

/** Throws MalformedXML, InvalidPart and InvalidPartOrder. */
function listedParts(bytes: Uint8Array): readonly ListedPart[] {
  const root = readXml(bytes)
  const elements = root.children.filter(({ name }) => name === 'Part')
  if (root.name !== 'CompleteMultipartUpload' || elements.length === 0) {
    throw new S3Fault('MalformedXML', 'CompleteMultipartUpload with parts')
  }
  if (elements.length > PARTS_MAX) throw new S3Fault('InvalidArgument', 'too many parts')
  const parts = elements.map((part) => {
    const number = Number(/^\d{1,5}$/.exec(childText(part, 'PartNumber')?.trim() ?? '')?.[0])
    const [, etag] = /^"?([0-9a-f]{32})"?$/.exec(childText(part, 'ETag')?.trim() ?? '') ?? []
    if (!(number >= 1 && number <= PARTS_MAX)) throw new S3Fault('MalformedXML', 'PartNumber')
    if (etag === undefined) throw new S3Fault('InvalidPart', 'the entity tag of a part')
    return { number, etag, checksums: checksumsIn(part) }
  })
  const isAscending = parts.every(({ number }, i) => i === 0 || parts[i - 1]!.number < number)
  if (!isAscending) throw new S3Fault('InvalidPartOrder')
  return parts
}

/** Parses the checksums that a client states for a part. */
function checksumsIn(part: XmlElement): Checksums {
  const checksums = new Map<string, string>()
  for (const [algorithm, { name }] of CHECKSUMS) {
    const value = childText(part, `Checksum${name}`)?.trim()
    if (value !== undefined) checksums.set(algorithm, value)
  }
  return checksums
}

/** Throws InvalidPart, EntityTooSmall, EntityTooLarge and InvalidRequest. */
async function storedParts(
  call: ObjectCall,
  listed: readonly ListedPart[],
): Promise<readonly PartDocument[]> {
  const { multipartId } = addressOf(call)
  const page = { after: 0, limit: PARTS_MAX }
  const known = await listPartsOf(call.gateway.files, multipartId, page)
  const byNumber = new Map(known.map((part) => [part.number, part]))
  const parts = listed.map(({ number, etag, checksums }) => {
    const part = byNumber.get(number)
    if (part?.etag !== etag) throw new S3Fault('InvalidPart', `part ${number}`)
    for (const [algorithm, value] of checksums) {
      const isSame = part.checksums?.get(algorithm) === value
      if (!isSame) throw new S3Fault('InvalidPart', `the ${algorithm} of part ${number}`)
    }
    return part
  })
  if (parts.slice(0, -1).some(({ size }) => size < PART_BYTES_MIN)) {
    throw new S3Fault('EntityTooSmall')
  }
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  if (size > FILE_BYTES_MAX) throw new S3Fault('EntityTooLarge')
  const stated = call.request.headers.get('x-amz-mp-object-size') ?? String(size)
  if (stated !== String(size)) throw new S3Fault('InvalidRequest', 'x-amz-mp-object-size')
  return parts
}

export async function abortUpload(call: ObjectCall): Promise<Response> {
  if (await abortMultipart(call.gateway.files, addressOf(call))) {
    return new Response(null, { status: 204 })
  }
  throw new S3Fault('NoSuchUpload')
}

export function addressOf({ bucket, key, query }: ObjectCall) {
  return { bucket, key, multipartId: query.get('uploadId') ?? '' }
}

/** Throws NoSuchUpload. */
export async function requireUpload(call: ObjectCall) {
  const upload = await findMultipart(call.gateway.files, addressOf(call))
  if (upload === null) throw new S3Fault('NoSuchUpload')
  return upload
}

/** Returns an element for each text. */
export function textFields(fields: Readonly<Record<string, string>>) {
  return Object.entries(fields).map(([name, text]) => element(name, text))
}
