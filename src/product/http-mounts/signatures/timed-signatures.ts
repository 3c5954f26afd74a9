/** Schemes that sign a time with the body: Standard Webhooks, Stripe and Slack. */
import { hmac } from '../../../system/digests.ts'
import {
  checkTime,
  matchesAny,
  type SignatureRejection,
  type SignedRequest,
  unusable,
} from './signed-requests.ts'

/** Signatures of one header. A service sends one for each secret while it replaces one. */
const SIGNATURES_MAX = 16
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export interface TimedCheck {
  readonly secrets: readonly string[]
  readonly toleranceSeconds: number
}

/**
 * Verifies by the specification of Standard Webhooks. Svix sends the same headers under names of
 * its own to services that it had before.
 */
export function verifyStandardWebhooks(
  request: SignedRequest,
  { secrets, toleranceSeconds }: TimedCheck,
): SignatureRejection | null {
  const { headers, body } = request
  const family = headers.get('webhook-signature') === null ? 'svix' : 'webhook'
  const id = headers.get(`${family}-id`)
  const time = headers.get(`${family}-timestamp`)
  const signatures = headers.get(`${family}-signature`)
  if (id === null || time === null || signatures === null) return 'missing'
  const given = signatures
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => each.slice('v1,'.length))
  if (given.length === 0 || given.length > SIGNATURES_MAX) return 'malformed'
  const expected = secrets.map((secret) =>
    hmac('sha256', standardKey(secret), `${id}.${time}.`, body).toString('base64'),
  )
  if (!matchesAny(expected, given)) return 'mismatch'
  return checkTime(time, request, toleranceSeconds)
}

/** Returns the key of `whsec_` and base64. */
function standardKey(secret: string): Uint8Array {
  const text = secret.replace(/^whsec_/, '')
  if (text !== '' && BASE64.test(text)) return Buffer.from(text, 'base64')
  throw unusable('a secret of Standard Webhooks is whsec_ and base64')
}

/** Verifies `Stripe-Signature: t=SECONDS,v1=HEX,v1=HEX`. */
export function verifyStripe(
  request: SignedRequest,
  { secrets, toleranceSeconds }: TimedCheck,
): SignatureRejection | null {
  const header = request.headers.get('stripe-signature')
  if (header === null) return 'missing'
  const parts = header.split(',').map((part) => part.trim())
  const valuesOf = (name: string) =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
  const [times, given] = [valuesOf('t'), valuesOf('v1')]
  const [time] = times
  if (time === undefined || times.length > 1) return 'malformed'
  if (given.length === 0 || given.length > SIGNATURES_MAX) return 'malformed'
  const expected = secrets.map((secret) =>
    hmac('sha256', secret, `${time}.`, request.body).toString('hex'),
  )
  if (!matchesAny(expected, given)) return 'mismatch'
  return checkTime(time, request, toleranceSeconds)
}

/** Verifies `X-Slack-Signature: v0=HEX` over `X-Slack-Request-Timestamp`. */
export function verifySlack(
  request: SignedRequest,
  { secrets, toleranceSeconds }: TimedCheck,
): SignatureRejection | null {
  const { headers, body } = request
  const signature = headers.get('x-slack-signature')
  const time = headers.get('x-slack-request-timestamp')
  if (signature === null || time === null) return 'missing'
  const expected = secrets.map(
    (secret) => `v0=${hmac('sha256', secret, `v0:${time}:`, body).toString('hex')}`,
  )
  if (!matchesAny(expected, [signature])) return 'mismatch'
  return checkTime(time, request, toleranceSeconds)
}
