/** Requests with signatures, and the steps that several schemes share. */
import { Fault } from '../../../errors/fault.ts'
import { digestEquals } from '../../../system/digests.ts'

/** The parts of a request that signatures cover. */
export interface SignedRequest {
  readonly headers: Pick<Headers, 'get'>
  readonly body: Uint8Array
  /** The URL as the service called it; null if the mount does not know it. */
  readonly url: string | null
  readonly nowMillis: number
}

/** The ID and the time that a signature covers. The scheme signs none that is null. */
export interface SignedStamp {
  readonly id: string | null
  /** Unix seconds. */
  readonly time: string | null
}

/** The signatures of a request with their stamp, as its headers have them. */
export interface ReadSignatures extends SignedStamp {
  readonly signatures: readonly string[]
}

/** The description of a scheme, by which requests are verified and samples are signed. */
export interface SignatureScheme {
  /** The header with the ID of the event that the service sends; null if it sends none. */
  readonly idHeader: string | null
  /** Null where no time is signed. */
  readonly toleranceSeconds: number | null
  /** Reads the signatures, or returns why there are none to compare. */
  read(headers: SignedRequest['headers']): ReadSignatures | SignatureRejection
  /** Returns the parts of the signed text, or why the request cannot be signed so. */
  covers(request: SignedRequest, stamp: SignedStamp): SignedParts | SignatureRejection
  /** Returns the signature of the parts. Throws UNAVAILABLE for a secret of another form. */
  sign(secret: string, parts: SignedParts): string
  /** Returns the headers that `read` reads. */
  write(signature: string, stamp: SignedStamp): Record<string, string>
  /** Returns the URL that the service would call, where the signature needs another one. */
  readonly address?: (request: SignedRequest) => string
}

export type SignedParts = readonly (Uint8Array | string)[]

/** Reasons of a rejection, which only the log shows. */
export const SIGNATURE_REJECTIONS = {
  missing: 'the signature is missing',
  malformed: 'the signature is malformed',
  mismatch: 'the signature does not match',
  expired: 'the signed time is too far from that of the server',
  token: 'the bearer token is not one of the expected issuer and subject',
} as const
export type SignatureRejection = keyof typeof SIGNATURE_REJECTIONS

/** Returns why the request is rejected; null for one with a signature of one of the secrets. */
export function verifyWith(
  scheme: SignatureScheme,
  request: SignedRequest,
  secrets: readonly string[],
): SignatureRejection | null {
  const read = scheme.read(request.headers)
  if (typeof read === 'string') return read
  const parts = scheme.covers(request, read)
  if (typeof parts === 'string') return parts
  const expected = secrets.map((secret) => scheme.sign(secret, parts))
  if (!matchesAny(expected, read.signatures)) return 'mismatch'
  if (read.time === null || scheme.toleranceSeconds === null) return null
  return checkTime(read.time, request, scheme.toleranceSeconds)
}

/** Seconds since the Unix epoch, as services write them. */
const UNIX_SECONDS = /^[0-9]{1,12}$/

/** Returns why the signed time is not accepted; null for one within the tolerance. */
function checkTime(
  seconds: string,
  { nowMillis }: Pick<SignedRequest, 'nowMillis'>,
  toleranceSeconds: number,
): SignatureRejection | null {
  if (!UNIX_SECONDS.test(seconds)) return 'malformed'
  const differenceMillis = Math.abs(Number(seconds) * 1_000 - nowMillis)
  return differenceMillis <= toleranceSeconds * 1_000 ? null : 'expired'
}

/** Returns whether one of the given texts is one of the expected ones, each in constant time. */
export function matchesAny(expected: readonly string[], given: readonly string[]): boolean {
  const digests = expected.map((text) => Buffer.from(text))
  let matches = false
  for (const text of given) {
    const bytes = Buffer.from(text)
    for (const digest of digests) matches = digestEquals(digest, bytes) || matches
  }
  return matches
}

/** Creates the fault of a mount or a secret that cannot verify anything. */
export function unusable(detail: string): Fault {
  return new Fault('UNAVAILABLE', { detail })
}
