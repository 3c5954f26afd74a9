/** `X-Twilio-Signature`: an HMAC of the URL and of the parameters of a form. */
import { hmac, sha256Hex } from '../../../system/digests.ts'
import {
  matchesAny,
  type SignatureScheme,
  type SignedRequest,
  unusable,
} from './signed-requests.ts'

/** Each parameter is hashed, so that a body of separators alone stays cheap. */
const PARAMETERS_MAX = 1_000

/** Covers a form, or a body of another type whose digest is the parameter `bodySHA256`. */
export const twilio: SignatureScheme = {
  idHeader: 'i-twilio-idempotency-token',
  toleranceSeconds: null,
  read(headers) {
    const signature = headers.get('x-twilio-signature')
    return signature === null ? 'missing' : { id: null, time: null, signatures: [signature] }
  },
  covers({ headers, body, url }) {
    if (url === null) throw unusable('a signature of Twilio covers the URL: set `publicUrl`')
    const digest = new URL(url).searchParams.get('bodySHA256')
    if (digest === null) {
      const parameters = parametersText(headers, body)
      return parameters === null ? 'malformed' : [url, parameters]
    }
    return matchesAny([sha256Hex(body)], [digest.toLowerCase()]) ? [url] : 'mismatch'
  },
  sign: (secret, parts) => hmac('sha1', secret, ...parts).toString('base64'),
  write: (signature, { id }) => ({
    'i-twilio-idempotency-token': id!,
    'x-twilio-signature': signature,
  }),
  address({ headers, body, url }) {
    const address = new URL(url!)
    if (!isForm(headers)) address.searchParams.set('bodySHA256', sha256Hex(body))
    return address.href
  },
}

/** Returns names and values in the order of the names; null for a body that is not a form. */
function parametersText(headers: SignedRequest['headers'], body: Uint8Array): string | null {
  if (body.length === 0) return ''
  if (!isForm(headers)) return null
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

function isForm(headers: SignedRequest['headers']): boolean {
  const [type = ''] = (headers.get('content-type') ?? '').split(';', 1)
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
