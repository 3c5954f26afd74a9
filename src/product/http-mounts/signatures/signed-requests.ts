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

/** Reasons of a rejection, which only the log shows. */
export const SIGNATURE_REJECTIONS = {
  missing: 'the signature is missing',
  malformed: 'the signature is malformed',
  mismatch: 'the signature does not match',
  expired: 'the signed time is too far from that of the server',
  token: 'the bearer token is not one of the expected issuer and subject',
} as const
export type SignatureRejection = keyof typeof SIGNATURE_REJECTIONS

/** Seconds since the Unix epoch, as services write them. */
const UNIX_SECONDS = /^[0-9]{1,12}$/

/** Returns why the signed time is not accepted; null for one within the tolerance. */
export function checkTime(
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
