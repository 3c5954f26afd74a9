/**
 * A response that a Function decides: what of HTTP it may say. Left out is all that acts on the
 * origin itself, on a connection or on a proxy: pages and scripts, cookies, policies of browsers,
 * and headers of the server.
 */
import { encodeBase64Url } from '../base64url.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { FunctionManifest } from '../manifest.ts'
import { formatTimestamp } from '../plain.ts'
import type { Json } from '../strict-json.ts'
import { decodeTagged } from '../tagged.ts'
import { ValidationError } from '../validation-error.ts'
import { compileValidator, type ValidatorJson } from '../validators.ts'
import { Timestamp, TypedId, type Value, type ValueObject } from '../values.ts'
import { HTTP_RESPONSE } from './responses.ts'

const RESPONSE_TEXT = canonicalJson(HTTP_RESPONSE as unknown as Json)

/** Returns whether a Function with this validator of results decides the response. */
export function isHttpResponse(returns: ValidatorJson): boolean {
  if (returns.type !== 'object' || returns.fields.contentType === undefined) return false
  return canonicalJson(returns as unknown as Json) === RESPONSE_TEXT
}

/** A response within the rules. */
export interface HttpAnswer {
  readonly status: number
  /** Names in lower case. The content type is among them. */
  readonly headers: ReadonlyMap<string, string>
  /** Null for none. */
  readonly body: string | Uint8Array<ArrayBuffer> | null
}

/** Which copies of a response may be kept: shared ones, those of the caller alone, or none. */
export type Caching = 'public' | 'private' | 'none'

/** Returns which copies of the response that such a Function decides may be kept. */
export function cachingOf({ kind, auth }: Pick<FunctionManifest, 'kind' | 'auth'>): Caching {
  if (kind !== 'query') return 'none'
  return auth === 'none' ? 'public' : 'private'
}

/** Statuses that speak of the request, not of the connection or of a proxy. */
const STATUSES: ReadonlySet<number> = new Set(
  [
    [200, 201, 202, 203, 204],
    [301, 302, 303, 307, 308],
    [400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418],
    [422, 423, 424, 428, 429, 451],
    [500, 501, 502, 503, 504],
  ].flat(),
)
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]
const LOCATED: readonly number[] = [201, 202, ...REDIRECTS]

/** Headers that a Function may set. The content type is a field of its own. */
export const RESPONSE_HEADERS: readonly string[] = [
  'cache-control',
  'content-disposition',
  'content-language',
  'deprecation',
  'etag',
  'last-modified',
  'link',
  'location',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'sunset',
  // The answer to the request by which Asana confirms a webhook.
  'x-hook-secret',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-total-count',
]
/** The prefix of headers of an application; no proxy and no browser knows one. */
const OWN_HEADER = /^x-app-[a-z0-9-]{1,58}$/
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
/** @limit HTTP mounts: headers of a response that a Function decides */
export const RESPONSE_HEADERS_MAX = 32
/** @limit HTTP mounts: characters of a header of such a response */
export const RESPONSE_HEADER_CHARACTERS_MAX = 2_048

/** Types that browsers show without running anything that they contain, or do not show at all. */
const TYPES: ReadonlySet<string> = new Set([
  'application/cbor',
  'application/gzip',
  'application/msgpack',
  'application/octet-stream',
  'application/pdf',
  'application/protobuf',
  'application/x-ndjson',
  'application/x-protobuf',
  'application/x-tar',
  'application/zip',
  'audio/aac',
  'audio/flac',
  'audio/mp4',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'audio/webm',
  'image/avif',
  'image/bmp',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/tiff',
  'image/vnd.microsoft.icon',
  'image/webp',
  'image/x-icon',
  'text/calendar',
  'text/csv',
  'text/markdown',
  'text/plain',
  'text/tab-separated-values',
  'text/vcard',
  'video/mp4',
  'video/mpeg',
  'video/ogg',
  'video/webm',
])
const JSON_TYPE = /^application\/(?:json|[a-z0-9][a-z0-9.-]{0,62}\+json)$/
/**
 * XML, which Twilio and readers of feeds expect. Its name space may make it a page, so that it is
 * always a download to a browser.
 */
const XML_TYPES: ReadonlySet<string> = new Set([
  'application/atom+xml',
  'application/rss+xml',
  'application/xml',
  'text/xml',
])
const CHARSET = /^charset="?utf-8"?$/
const ATTACHMENT = /^attachment(?:$|;)/i

/** Longest time of a copy, a year in seconds. */
const AGE_SECONDS_MAX = 31_536_000
const PLAIN_DIRECTIVES: readonly string[] = [
  'immutable',
  'must-revalidate',
  'no-cache',
  'no-store',
  'no-transform',
  'private',
  'proxy-revalidate',
  'public',
]
const TIMED_DIRECTIVES: readonly string[] = [
  'max-age',
  's-maxage',
  'stale-if-error',
  'stale-while-revalidate',
]
/** Directives by which caches keep the responses to requests with a token, for all callers. */
const SHARING_DIRECTIVES: readonly string[] = ['public', 's-maxage']

const checkForm = compileValidator(HTTP_RESPONSE, { coerce: false })

/**
 * Returns the response of a result, which is the text of a tagged value. Throws ValidationError for
 * a value that the validator does not accept, and as `readHttpResponse` does.
 */
export function readResponseText(tagged: string, caching: Caching): HttpAnswer {
  const value = decodeTagged(JSON.parse(tagged) as Json)
  return readHttpResponse(checkForm(value, '') as ValueObject, caching)
}

/**
 * Returns the response of a value that the validator accepts. Throws ValidationError with the path
 * of the first part that is outside the rules; it repeats no value.
 */
export function readHttpResponse(value: ValueObject, caching: Caching): HttpAnswer {
  const status = (value.get('status') as number | undefined) ?? 200
  if (!STATUSES.has(status)) throw new ValidationError('a status that may be answered', '.status')
  const headers = headersOf((value.get('headers') as ValueObject | undefined) ?? new Map())
  checkLocation(headers.get('location'), status)
  checkCaching(headers.get('cache-control'), caching)
  const { type, body } = contentOf(value)
  if (body !== null && status === 204) throw new ValidationError('no body beside 204', '.body')
  if (type === null) return { status, headers, body }
  headers.set('content-type', type)
  if (isXml(type)) requireDownload(headers)
  return { status, headers, body }
}

function headersOf(given: ValueObject): Map<string, string> {
  if (given.size > RESPONSE_HEADERS_MAX) {
    throw new ValidationError(`at most ${RESPONSE_HEADERS_MAX} headers`, '.headers')
  }
  const headers = new Map<string, string>()
  for (const [written, value] of given as ReadonlyMap<string, string>) {
    const name = written.toLowerCase()
    if (!RESPONSE_HEADERS.includes(name) && !OWN_HEADER.test(name)) {
      const own = 'a header that may be answered, or one that begins with x-app-'
      const type = name === 'content-type' ? 'contentType in its place' : own
      throw new ValidationError(type, `.headers.${shownName(name)}`)
    }
    if (headers.has(name)) throw new ValidationError('a header once', `.headers.${name}`)
    if (value.length > RESPONSE_HEADER_CHARACTERS_MAX || !HEADER_VALUE.test(value)) {
      const rule = `1 to ${RESPONSE_HEADER_CHARACTERS_MAX} visible ASCII characters`
      throw new ValidationError(rule, `.headers.${name}`)
    }
    headers.set(name, value)
  }
  return headers
}

/** Returns the name as messages may show it: any other text may be a secret. */
function shownName(name: string): string {
  return /^[a-z][a-z0-9-]{0,39}$/.test(name) ? name : '*'
}

function checkLocation(location: string | undefined, status: number): void {
  if (location === undefined) {
    if (REDIRECTS.includes(status)) {
      throw new ValidationError('a location beside a redirect', '.headers.location')
    }
    return
  }
  if (!LOCATED.includes(status)) {
    throw new ValidationError('no location beside this status', '.headers.location')
  }
  // A relative reference is one of the origin.
  const base = 'https://origin.invalid/'
  const isWeb = URL.canParse(location, base) && /^https?:$/.test(new URL(location, base).protocol)
  if (!isWeb) throw new ValidationError('a URL of http or https', '.headers.location')
}

function checkCaching(control: string | undefined, caching: Caching): void {
  if (control === undefined) return
  const path = '.headers.cache-control'
  for (const directive of control.toLowerCase().split(',')) {
    const [name = '', seconds, ...more] = directive.trim().split('=')
    const isTimed = TIMED_DIRECTIVES.includes(name)
    const isKnown = isTimed
      ? more.length === 0 &&
        /^[0-9]{1,8}$/.test(seconds ?? '') &&
        Number(seconds) <= AGE_SECONDS_MAX
      : seconds === undefined && PLAIN_DIRECTIVES.includes(name)
    if (!isKnown) throw new ValidationError('known directives, of a year at most', path)
    if (caching === 'none' && name !== 'no-store') {
      throw new ValidationError('no-store alone, since no copy may be kept', path)
    }
    if (caching === 'private' && SHARING_DIRECTIVES.includes(name)) {
      throw new ValidationError('no shared copy of what is answered to an identity', path)
    }
  }
}

interface Content {
  readonly type: string | null
  readonly body: HttpAnswer['body']
}

function contentOf(value: ValueObject): Content {
  const declared = value.get('contentType') as string | undefined
  const body = value.get('body') as string | Uint8Array<ArrayBuffer> | undefined
  if (value.has('json')) {
    if (body !== undefined) throw new ValidationError('body or json, not both', '.json')
    const type = declared === undefined ? 'application/json' : contentTypeOf(declared)
    if (!JSON_TYPE.test(essenceOf(type)))
      throw new ValidationError('a type of JSON', '.contentType')
    return { type, body: jsonTextOf(value.get('json')!) }
  }
  if (body === undefined) {
    if (declared === undefined) return { type: null, body: null }
    throw new ValidationError('no content type without a body', '.contentType')
  }
  const usual = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream'
  return { type: declared === undefined ? usual : contentTypeOf(declared), body }
}

/** Returns the content type in its canonical form. */
function contentTypeOf(declared: string): string {
  const [essence = '', parameter, ...more] = declared
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const isAllowed = TYPES.has(essence) || JSON_TYPE.test(essence) || XML_TYPES.has(essence)
  if (!isAllowed) {
    const fits = 'a content type that may be answered, never one of pages or scripts'
    throw new ValidationError(fits, '.contentType')
  }
  if (more.length > 0 || (parameter !== undefined && !CHARSET.test(parameter))) {
    throw new ValidationError('no parameter but charset=utf-8', '.contentType')
  }
  return parameter === undefined && !isText(essence) ? essence : `${essence}; charset=utf-8`
}

function isText(essence: string): boolean {
  return essence.startsWith('text/')
}

function essenceOf(type: string): string {
  return type.split(';', 1)[0]!
}

function isXml(type: string): boolean {
  return XML_TYPES.has(essenceOf(type))
}

function requireDownload(headers: Map<string, string>): void {
  const disposition = headers.get('content-disposition')
  if (disposition === undefined) headers.set('content-disposition', 'attachment')
  else if (!ATTACHMENT.test(disposition)) {
    throw new ValidationError('attachment for XML', '.headers.content-disposition')
  }
}

/**
 * Returns a value as the JSON that other services expect: every number is one, unless JSON rounds
 * it. Nothing tells the types apart, so that the text need not become the value again.
 */
function jsonTextOf(value: Value): string {
  if (typeof value === 'bigint') {
    return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`
  }
  if (value instanceof Uint8Array) return `"${encodeBase64Url(value)}"`
  if (value instanceof Timestamp) return `"${formatTimestamp(value.micros)}"`
  if (value instanceof TypedId) return `"${value.id}"`
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map(jsonTextOf).join()}]`
  if (!(value instanceof Map)) return JSON.stringify(value)
  const members = [...(value as ValueObject)]
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${jsonTextOf(item)}`).join()}}`
}
