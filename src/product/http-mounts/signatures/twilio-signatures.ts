/** `X-Twilio-Signature`: an HMAC of the URL and of the parameters of a form. */
import { hmac, sha256Hex } from '../../../system/digests.ts'
import {
  matchesAny,
  type SignatureRejection,
  type SignedRequest,
  unusable,
} from './signed-requests.ts'

/** Each parameter is hashed, so that a body of separators alone stays cheap. */
const PARAMETERS_MAX = 1_000

/** Verifies a form, or a body of another type whose digest is the parameter `bodySHA256`. */
export function verifyTwilio(
  { headers, body, url }: SignedRequest,
  secrets: readonly string[],
): SignatureRejection | null {
  const signature = headers.get('x-twilio-signature')
  if (signature === null) return 'missing'
  if (url === null) throw unusable('a signature of Twilio covers the URL: set `publicUrl`')
  const digest = new URL(url).searchParams.get('bodySHA256')
  if (digest !== null && !matchesAny([sha256Hex(body)], [digest.toLowerCase()])) return 'mismatch'
  const signed = digest === null ? parametersText(headers, body) : ''
  if (signed === null) return 'malformed'
  const expected = secrets.map((secret) => hmac('sha1', secret, url + signed).toString('base64'))
  return matchesAny(expected, [signature]) ? null : 'mismatch'
}

/** Returns names and values in the order of the names; null for a body that is not a form. */
function parametersText(headers: Pick<Headers, 'get'>, body: Uint8Array): string | null {
  if (body.length === 0) return ''
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1)
  if (type.trim().toLowerCase() !== 'application/x-www-form-urlencoded') return null
  const parameters = new URLSearchParams(new TextDecoder().decode(body))
  if (parameters.size > PARAMETERS_MAX) return null
  // A repeated value is signed once.
  const texts = [...parameters].map(([name, value]) => ({ name, value }))
  texts.sort((a, b) => compare(a.name, b.name) || compare(a.value, b.value))
  return texts
    .filter(({ name, value }, i) => {
      const previous = texts[i - 1]
      return previous?.name !== name || previous.value !== value
    })
    .map(({ name, value }) => name + value)
    .join('')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
