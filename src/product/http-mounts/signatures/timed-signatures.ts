/** Schemes that sign a time with the body: Standard Webhooks, Stripe and Slack. */
import { hmac } from '../../../system/digests.ts'
import { type SignatureScheme, type SignedParts, unusable } from './signed-requests.ts'

/** Signatures of one header. A service sends one for each secret while it replaces one. */
const SIGNATURES_MAX = 16
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * The specification of Standard Webhooks. Svix sends the same headers under names of its own to
 * services that it had before.
 */
export function standardWebhooks(toleranceSeconds: number): SignatureScheme {
  return {
    idHeader: 'webhook-id',
    toleranceSeconds,
    read(headers) {
      const family = headers.get('webhook-signature') === null ? 'svix' : 'webhook'
      const id = headers.get(`${family}-id`)
      const time = headers.get(`${family}-timestamp`)
      const texts = headers.get(`${family}-signature`)
      if (id === null || time === null || texts === null) return 'missing'
      const signatures = texts
        .split(' ')
        .filter((each) => each.startsWith('v1,'))
        .map((each) => each.slice('v1,'.length))
      return isCount(signatures) ? { id, time, signatures } : 'malformed'
    },
    covers: ({ body }, { id, time }) => [`${id}.${time}.`, body],
    sign: (secret, parts) => hmac('sha256', standardKey(secret), ...parts).toString('base64'),
    write: (signature, { id, time }) => ({
      'webhook-id': id!,
      'webhook-timestamp': time!,
      'webhook-signature': `v1,${signature}`,
    }),
  }
}

/** Returns the key of `whsec_` and base64. */
function standardKey(secret: string): Uint8Array {
  const text = secret.replace(/^whsec_/, '')
  if (text !== '' && BASE64.test(text)) return Buffer.from(text, 'base64')
  throw unusable('a secret of Standard Webhooks is whsec_ and base64')
}

/** `Stripe-Signature: t=SECONDS,v1=HEX,v1=HEX`. */
export function stripe(toleranceSeconds: number): SignatureScheme {
  return {
    idHeader: null,
    toleranceSeconds,
    read(headers) {
      const header = headers.get('stripe-signature')
      if (header === null) return 'missing'
      const parts = header.split(',').map((part) => part.trim())
      const valuesOf = (name: string) =>
        parts
          .filter((part) => part.startsWith(`${name}=`))
          .map((part) => part.slice(name.length + 1))
      const [times, signatures] = [valuesOf('t'), valuesOf('v1')]
      const [time] = times
      if (time === undefined || times.length > 1) return 'malformed'
      return isCount(signatures) ? { id: null, time, signatures } : 'malformed'
    },
    covers: ({ body }, { time }) => [`${time}.`, body],
    sign: hexOfSha256,
    write: (signature, { time }) => ({ 'stripe-signature': `t=${time},v1=${signature}` }),
  }
}

/** `X-Slack-Signature: v0=HEX` over `X-Slack-Request-Timestamp`. */
export function slack(toleranceSeconds: number): SignatureScheme {
  return {
    idHeader: null,
    toleranceSeconds,
    read(headers) {
      const signature = headers.get('x-slack-signature')
      const time = headers.get('x-slack-request-timestamp')
      if (signature === null || time === null) return 'missing'
      return { id: null, time, signatures: [signature] }
    },
    covers: ({ body }, { time }) => [`v0:${time}:`, body],
    sign: (secret, parts) => `v0=${hexOfSha256(secret, parts)}`,
    write: (signature, { time }) => ({
      'x-slack-request-timestamp': time!,
      'x-slack-signature': signature,
    }),
  }
}

function isCount({ length }: readonly string[]): boolean {
  return length > 0 && length <= SIGNATURES_MAX
}

function hexOfSha256(secret: string, parts: SignedParts): string {
  return hmac('sha256', secret, ...parts).toString('hex')
}
