/** Headers that S3 clients store with an object, and headers of its downloads. */
import type { FileDocument } from '../../../../engine/files/file-documents.ts'
import { isContentType, USER_METADATA_BYTES_MAX } from '../../../../value/files/files.ts'
import { S3Fault } from '../errors.ts'

const METADATA_PREFIX = 'x-amz-meta-'
/** Headers that are stored and sent back unchanged. */
const KEPT = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
]
/** Bound on the bytes of all stored headers together. */
const KEPT_BYTES_MAX = 4 * 1024
const METADATA_NAME = /^x-amz-meta-[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/
/** Values of metadata are printable ASCII: clients encode other characters. */
const HEADER_VALUE = /^[\x20-\x7e\t]*$/
const DEFAULT_TYPE = 'binary/octet-stream'

/** The type and the headers that a client stores with an object. */
export interface ObjectHeaders {
  readonly contentType: string
  readonly headers: ReadonlyMap<string, string>
}

/** Unsupported headers of S3. To ignore them would change access to the object or its storage. */
const REJECTED: readonly [RegExp, ConstructorParameters<typeof S3Fault>[0]][] = [
  [/^x-amz-grant-/, 'AccessControlListNotSupported'],
  [/^x-amz-(?:server-side-encryption|object-lock|tagging|website-redirect)/, 'NotImplemented'],
]
const ACLS = ['private', 'bucket-owner-full-control']

/** Throws MetadataTooLarge, InvalidArgument, InvalidStorageClass and NotImplemented. */
export function parseObjectHeaders(headers: Headers): ObjectHeaders {
  requireSupported(headers)
  const contentType = headers.get('content-type') ?? DEFAULT_TYPE
  if (!isContentType(contentType)) throw new S3Fault('InvalidArgument', 'content-type')
  const stored = new Map<string, string>()
  let [metadataBytes, keptBytes] = [0, 0]
  for (const [name, value] of headers) {
    if (name.startsWith(METADATA_PREFIX)) {
      metadataBytes += name.length - METADATA_PREFIX.length + value.length
      if (!METADATA_NAME.test(name)) throw new S3Fault('InvalidArgument', 'a name of metadata')
    } else if (KEPT.includes(name)) keptBytes += name.length + value.length
    else continue
    if (!HEADER_VALUE.test(value)) throw new S3Fault('InvalidArgument', `the header ${name}`)
    const kept = name === 'content-encoding' ? storedEncoding(value) : value
    // Metadata may be empty; any other empty header is ignored.
    if (kept !== '' || name.startsWith(METADATA_PREFIX)) stored.set(name, kept)
  }
  if (metadataBytes > USER_METADATA_BYTES_MAX || keptBytes > KEPT_BYTES_MAX) {
    throw new S3Fault('MetadataTooLarge')
  }
  return { contentType, headers: stored }
}

/** Returns the content encodings of the object, without `aws-chunked` of the transfer. */
function storedEncoding(value: string): string {
  const encodings = value.split(',').map((each) => each.trim())
  return encodings.filter((each) => each !== '' && each !== 'aws-chunked').join(',')
}

function requireSupported(headers: Headers): void {
  const storageClass = headers.get('x-amz-storage-class') ?? 'STANDARD'
  if (storageClass !== 'STANDARD') throw new S3Fault('InvalidStorageClass')
  if (!ACLS.includes(headers.get('x-amz-acl') ?? 'private')) {
    throw new S3Fault('AccessControlListNotSupported')
  }
  for (const name of headers.keys()) {
    const code = REJECTED.find(([pattern]) => pattern.test(name))?.[1]
    if (code !== undefined) throw new S3Fault(code, `the header ${name}`)
  }
}

/**
 * Returns the entity tag with its quotes. Files without an MD5 get a tag in the form of multipart
 * uploads, so that no client compares it with an MD5.
 */
export function entityTag({ etag, sha256 }: Pick<FileDocument, 'etag' | 'sha256'>): string {
  return `"${etag ?? `${sha256.slice(0, 32)}-1`}"`
}

export function lastModifiedMillis({ createdAtMicros }: Pick<FileDocument, 'createdAtMicros'>) {
  return Number(createdAtMicros / 1000n)
}

/** Formats a time for lists: RFC 3339 with milliseconds. */
export function isoTime(file: Pick<FileDocument, 'createdAtMicros'>): string {
  return new Date(lastModifiedMillis(file)).toISOString()
}

/** Returns the headers of a download. `overrides` are the `response-*` parameters of the query. */
export function downloadHeaders(
  file: FileDocument,
  overrides: ReadonlyMap<string, string>,
): Headers {
  const headers = new Headers({
    'content-type': file.contentType,
    etag: entityTag(file),
    'last-modified': new Date(lastModifiedMillis(file)).toUTCString(),
    'accept-ranges': 'bytes',
    // A signed URL may be opened in a browser, which must not execute stored content.
    'content-security-policy': 'sandbox',
  })
  for (const [name, value] of file.headers ?? []) headers.set(name, value)
  for (const name of ['content-type', ...KEPT]) {
    const value = overrides.get(`response-${name}`)
    if (value === undefined) continue
    if (!HEADER_VALUE.test(value)) throw new S3Fault('InvalidArgument', `response-${name}`)
    headers.set(name, value)
  }
  return headers
}
