/** Schemes that put one HMAC into one header: that of GitHub, and those an author describes. */
import { hmac } from '../../../system/digests.ts'
import type { HmacManifest } from '../../../value/http/routes.ts'
import {
  checkTime,
  matchesAny,
  type SignatureRejection,
  type SignedRequest,
} from './signed-requests.ts'

/** Verifies `X-Hub-Signature-256: sha256=HEX`. */
export function verifyGithub(
  request: SignedRequest,
  secrets: readonly string[],
): SignatureRejection | null {
  const signature = request.headers.get('x-hub-signature-256')
  if (signature === null) return 'missing'
  const expected = secrets.map(
    (secret) => `sha256=${hmac('sha256', secret, request.body).toString('hex')}`,
  )
  return matchesAny(expected, [signature]) ? null : 'mismatch'
}

/** Verifies what `signature.hmac` describes. Hexadecimal digits may be upper case. */
export function verifyHmac(
  request: SignedRequest,
  manifest: HmacManifest,
  secrets: readonly string[],
): SignatureRejection | null {
  const { headers, body } = request
  const { algorithm, encoding, prefix, timestampHeader, toleranceSeconds } = manifest
  const signature = headers.get(manifest.header)
  const time = timestampHeader === undefined ? null : headers.get(timestampHeader)
  if (signature === null || (timestampHeader !== undefined && time === null)) return 'missing'
  if (!signature.startsWith(prefix)) return 'malformed'
  const text = signature.slice(prefix.length)
  const given = encoding === 'hex' ? text.toLowerCase() : text
  const expected = secrets.map((secret) =>
    hmac(algorithm, secret, time === null ? '' : `${time}.`, body).toString(encoding),
  )
  if (!matchesAny(expected, [given])) return 'mismatch'
  return time === null ? null : checkTime(time, request, toleranceSeconds!)
}
