/**
 * Parses URLs of the S3-compatible API: path style, below `/v1/s3` or at the root of the S3 host
 * (SERVICE_S3_HOST). Names of buckets and keys are decoded.
 */
import { isObjectKey, OBJECT_KEY_BYTES_MAX } from '../../../value/files/files.ts'
import { S3Fault } from './errors.ts'

export const S3_PATH = '/v1/s3'

/** Bounds on the parameters and the characters of a query. A signed URL has about 1,000. */
const PARAMETERS_MAX = 64
const QUERY_CHARACTERS_MAX = 16 * 1024

export interface S3Url {
  /** The path and the query as they were received, for responses and signatures. */
  readonly path: string
  readonly bucket: string | null
  readonly key: string | null
  /** Decoded parameters. */
  readonly query: ReadonlyMap<string, string>
}

/** Returns whether the path, with or without a query, belongs to the S3-compatible API. */
export function isS3Path(path: string): boolean {
  if (!path.startsWith(S3_PATH)) return false
  const next = path[S3_PATH.length]
  return next === undefined || next === '/' || next === '?'
}

/**
 * Returns the path without the prefix `/v1/s3`. Paths at the S3 host need no prefix but may have
 * it: no bucket is called `v1`, so both forms are unambiguous.
 */
export function pathBelowS3(path: string): string {
  return isS3Path(path) ? path.slice(S3_PATH.length) || '/' : path
}

const AUTHORITY = /^https?:\/\/([^/?#]*?)(?::\d+)?(?=[/?#]|$)/

/** Returns whether the path or the host of the URL belongs to the S3-compatible API. */
export function isS3Url(url: string, s3Host: string | null): boolean {
  if (s3Host !== null && AUTHORITY.exec(url)?.[1]?.toLowerCase() === s3Host) return true
  return isS3Path(url.slice(url.indexOf('/', url.indexOf('://') + 3)))
}

/** Parses bucket, key and query. Throws InvalidURI, KeyTooLongError and InvalidArgument. */
export function parseS3Url(url: string): S3Url {
  const target = url.slice(url.indexOf('/', url.indexOf('://') + 3)).split('#', 1)[0]!
  const question = target.indexOf('?')
  const path = question < 0 ? target : target.slice(0, question)
  const query = parseQuery(question < 0 ? '' : target.slice(question + 1))
  const rest = pathBelowS3(path).slice(1)
  const slash = rest.indexOf('/')
  const bucket = decodePart(slash < 0 ? rest : rest.slice(0, slash), false)
  const key = slash < 0 ? '' : decodePart(rest.slice(slash + 1), false)
  if (bucket === '' && key !== '') throw new S3Fault('InvalidURI', 'a key without a bucket')
  if (key !== '') requireKey(key)
  return { path, bucket: bucket || null, key: key || null, query }
}

/** Throws KeyTooLongError and InvalidURI unless the text is a valid object key. */
export function requireKey(key: string): void {
  if (isObjectKey(key)) return
  const isLong = key.length > OBJECT_KEY_BYTES_MAX || !key.includes('\0')
  throw new S3Fault(key !== '' && isLong ? 'KeyTooLongError' : 'InvalidURI', 'the key')
}

function parseQuery(text: string): ReadonlyMap<string, string> {
  const query = new Map<string, string>()
  if (text === '') return query
  const parts = text.split('&').filter((part) => part !== '')
  if (text.length > QUERY_CHARACTERS_MAX || parts.length > PARAMETERS_MAX) {
    throw new S3Fault('InvalidURI', 'a query that is too long')
  }
  for (const part of parts) {
    const equals = part.indexOf('=')
    const name = decodePart(equals < 0 ? part : part.slice(0, equals), true)
    const value = equals < 0 ? '' : decodePart(part.slice(equals + 1), true)
    if (query.has(name)) throw new S3Fault('InvalidArgument', 'a parameter that is repeated')
    query.set(name, value)
  }
  return query
}

/** Decodes percent-encoded UTF-8, without overlong forms. Throws InvalidURI. */
export function decodePart(text: string, isQuery: boolean): string {
  try {
    return decodeURIComponent(isQuery ? text.replaceAll('+', '%20') : text)
  } catch {
    throw new S3Fault('InvalidURI', 'percent-encoded UTF-8')
  }
}

/** Encodes all but the unreserved characters of RFC 3986, as Signature Version 4 requires. */
export function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** Encodes a path or a key, and keeps its slashes. */
export function uriEncodePath(text: string): string {
  return text.split('/').map(uriEncode).join('/')
}
