/**
 * Signature Version 4 ("Signature Calculations for the Authorization Header", and "... Chunked
 * Upload", of the Amazon S3 API reference): canonical requests and their keyed digests.
 */
import { digestEquals, hmacSha256, sha256Hex } from '../../../../system/digests.ts'
import type { Secret } from '../../../../value/secret.ts'
import { pathBelowS3, S3_PATH, type S3Url, uriEncode, uriEncodePath } from '../requests.ts'
import { ALGORITHM, type Authorization } from './authorizations.ts'

/** The parts of a request that a signature covers. */
export interface SignedRequest {
  readonly method: string
  readonly url: Pick<S3Url, 'path' | 'query'>
  readonly headers: Headers
  /** The signed value for the body: a digest or the name of a mode. */
  readonly payload: string
}

/** Derives the signing key of one day, region and service: 32 bytes. */
export function signingKey(secret: Secret, { date, region }: Authorization): Uint8Array {
  const ofDate = hmacSha256(`AWS4${secret.reveal()}`, date)
  return hmacSha256(hmacSha256(hmacSha256(ofDate, region), 's3'), 'aws4_request')
}

/** Returns whether the signature is valid for the request. The comparison takes constant time. */
export function isSignedBy(
  key: Uint8Array,
  authorization: Authorization,
  request: SignedRequest,
): boolean {
  const given = Uint8Array.fromHex(authorization.signature)
  return canonicalForms(request, authorization).some((canonical) => {
    const { timestamp, scope } = authorization
    const text = `${ALGORITHM}\n${timestamp}\n${scope}\n${sha256Hex(canonical)}`
    return digestEquals(hmacSha256(key, text), given)
  })
}

/**
 * Returns the canonical requests that the client may have signed. All of them name one resource:
 * the URL as received; the URL without `/v1/s3`, for a proxy that maps a separate host to it; and
 * the URL with `/v1/s3` as a part of the host, which s3cmd signs.
 */
function canonicalForms(request: SignedRequest, authorization: Authorization): string[] {
  const path = canonicalPath(request.url.path)
  const below = pathBelowS3(path)
  const host = request.headers.get('host') ?? ''
  return [
    canonicalRequest(request, authorization, { host, path }),
    canonicalRequest(request, authorization, { host, path: below }),
    canonicalRequest(request, authorization, { host: host + S3_PATH, path: below }),
  ]
}

export function canonicalRequest(
  { method, url, headers, payload }: SignedRequest,
  { signedHeaders }: Pick<Authorization, 'signedHeaders'>,
  { host, path }: { readonly host: string; readonly path: string },
): string {
  const lines = signedHeaders.map((name) => {
    const value = name === 'host' ? host : (headers.get(name) ?? '')
    return `${name}:${value.trim().replace(/ +/g, ' ')}\n`
  })
  const signed = [lines.join(''), signedHeaders.join(';'), payload]
  return [method, path, canonicalQuery(url.query), ...signed].join('\n')
}

/** Returns the path as clients sign it, independent of the characters that they left unencoded. */
function canonicalPath(path: string): string {
  return uriEncodePath(decodeURIComponent(path))
}

function canonicalQuery(query: ReadonlyMap<string, string>): string {
  const encoded = [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [uriEncode(name), uriEncode(value)] as const)
  encoded.sort(([a], [b]) => (a < b ? -1 : 1))
  return encoded.map(([name, value]) => `${name}=${value}`).join('&')
}

/** Verifies the signatures of the chunks of one body. Each signature covers the previous one. */
export class ChunkSignatures {
  readonly #key: Uint8Array
  readonly #authorization: Authorization
  #previous: string

  constructor(key: Uint8Array, authorization: Authorization) {
    this.#key = key
    this.#authorization = authorization
    this.#previous = authorization.signature
  }

  /** Returns whether the signature is valid for the next chunk, given its SHA-256. */
  isNextChunk(signature: string, sha256: string): boolean {
    const text = this.#text('AWS4-HMAC-SHA256-PAYLOAD', `${EMPTY_SHA256}\n${sha256}`)
    return this.#isNext(signature, text)
  }

  /** Returns whether the signature is valid for the trailers: lines of `name:value`. */
  isTrailer(signature: string, trailers: string): boolean {
    return this.#isNext(signature, this.#text('AWS4-HMAC-SHA256-TRAILER', sha256Hex(trailers)))
  }

  #text(algorithm: string, digests: string): string {
    const { timestamp, scope } = this.#authorization
    return `${algorithm}\n${timestamp}\n${scope}\n${this.#previous}\n${digests}`
  }

  #isNext(signature: string, text: string): boolean {
    if (!/^[0-9a-f]{64}$/.test(signature)) return false
    const expected = hmacSha256(this.#key, text)
    this.#previous = signature
    return digestEquals(expected, Uint8Array.fromHex(signature))
  }
}

const EMPTY_SHA256 = sha256Hex('')
