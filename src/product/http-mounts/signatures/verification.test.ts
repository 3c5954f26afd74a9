/**
 * Signatures of other services: recorded requests from their documentation are accepted, and each
 * change of one is rejected. The digests were made by the services, not by this code.
 */
import { describe, expect, test } from 'vitest'
import { Fault } from '../../../errors/fault.ts'
import { hmac, sha256Hex } from '../../../system/digests.ts'
import type { SignatureManifest } from '../../../value/http/routes.ts'
import { principalOf } from '../../../value/identities.ts'
import { Secret } from '../../../value/secret.ts'
import type { SignedRequest } from './signed-requests.ts'
import { type VerificationPort, verifySignature } from './verification.ts'

interface Sample {
  readonly manifest: SignatureManifest
  readonly secret: string
  readonly body: string
  readonly headers: Record<string, string>
  /** The header with the digest. */
  readonly signature: string
  /** Unix seconds at which it was signed; absent for a scheme without a time. */
  readonly signedAt?: number
  readonly url?: string
}

const SLACK_BODY =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&' +
  'channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&' +
  'command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F' +
  'T1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&' +
  'trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
const STRIPE_BODY = '{"id": "evt_test_webhook","object": "event"}'
const TWILIO_BODY =
  'CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212'
const FORM = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' }
const STANDARD = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: '1614265330',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const STANDARD_SAMPLE = {
  manifest: { scheme: 'standardWebhooks', secret: 'S', toleranceSeconds: 300 },
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  body: '{"test": 2432232314}',
  signedAt: 1614265330,
} as const

const SAMPLES: Record<string, Sample> = {
  standardWebhooks: {
    ...STANDARD_SAMPLE,
    headers: {
      'webhook-id': STANDARD.id,
      'webhook-timestamp': STANDARD.timestamp,
      'webhook-signature': STANDARD.signature,
    },
    signature: 'webhook-signature',
  },
  svix: {
    ...STANDARD_SAMPLE,
    headers: {
      'svix-id': STANDARD.id,
      'svix-timestamp': STANDARD.timestamp,
      'svix-signature': STANDARD.signature,
    },
    signature: 'svix-signature',
  },
  stripe: {
    manifest: { scheme: 'stripe', secret: 'S', toleranceSeconds: 300 },
    secret: 'whsec_test_secret',
    body: STRIPE_BODY,
    headers: {
      // From `openssl dgst -sha256 -hmac whsec_test_secret`.
      'stripe-signature':
        't=1492774577,v1=66d86a97ac5620300b0335877ac036f6d74f84ea2e1df371bd45689d0090f9b7',
    },
    signature: 'stripe-signature',
    signedAt: 1492774577,
  },
  github: {
    manifest: { scheme: 'github', secret: 'S' },
    secret: "It's a Secret to Everybody",
    body: 'Hello, World!',
    headers: {
      'x-hub-signature-256':
        'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    },
    signature: 'x-hub-signature-256',
  },
  slack: {
    manifest: { scheme: 'slack', secret: 'S', toleranceSeconds: 300 },
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    body: SLACK_BODY,
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    signature: 'x-slack-signature',
    signedAt: 1531420618,
  },
  twilio: {
    manifest: { scheme: 'twilio', secret: 'S' },
    secret: '12345',
    body: TWILIO_BODY,
    url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
    headers: { ...FORM, 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' },
    signature: 'x-twilio-signature',
  },
  // The case of RFC 4231, 4.3.
  hmac: {
    manifest: {
      scheme: 'hmac',
      secret: 'S',
      header: 'x-sig',
      algorithm: 'sha512',
      encoding: 'hex',
      prefix: 'v1=',
    },
    secret: 'Jefe',
    body: 'what do ya want for nothing?',
    headers: {
      'x-sig':
        'v1=164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554' +
        '9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
    },
    signature: 'x-sig',
  },
}

const NO_TOKEN = async () => {
  throw new Fault('FUNCTIONAL_TOKEN_INVALID')
}

function port(value: string | null, verifyToken: VerificationPort['verifyToken'] = NO_TOKEN) {
  return { secret: () => (value === null ? null : new Secret(value)), verifyToken }
}

type Changes = Partial<Omit<Sample, 'signature'>> & { readonly nowSeconds?: number }

function verify(sample: Sample, changes: Changes = {}) {
  const { manifest, secret, body, headers, url, signedAt } = { ...sample, ...changes }
  const request: SignedRequest = {
    headers: new Headers(headers),
    body: Buffer.from(body, 'latin1'),
    url: url ?? null,
    nowMillis: (changes.nowSeconds ?? signedAt ?? 1_700_000_000) * 1_000,
  }
  return verifySignature(port(secret), manifest, request)
}

/** Returns the text with one bit of the character at `at` changed. */
function flipped(text: string, at: number, bit = 0): string {
  const bytes = Buffer.from(text, 'latin1')
  bytes[at]! ^= 1 << bit
  return bytes.toString('latin1')
}

describe.each(Object.entries(SAMPLES))('a recorded request of %s', (_, sample) => {
  test('the request is accepted', async () => {
    expect(await verify(sample)).toBeNull()
  })

  test('the request is rejected if one bit of the body differs', async () => {
    const ends = [0, sample.body.length >> 1, sample.body.length - 1]
    for (const at of ends) {
      expect(await verify(sample, { body: flipped(sample.body, at) })).toBe('mismatch')
    }
    expect(await verify(sample, { body: `${sample.body} ` })).toBe('mismatch')
  })

  test('the request is rejected if one character of the digest differs', async () => {
    const header = sample.headers[sample.signature]!
    for (let at = header.length - 27; at < header.length - 1; at++) {
      const headers = { ...sample.headers, [sample.signature]: flipped(header, at) }
      expect(await verify(sample, { headers })).toMatch(/mismatch|malformed/)
    }
    for (const changed of [header.slice(0, -2), `${header}0`, '']) {
      const headers = { ...sample.headers, [sample.signature]: changed }
      expect(await verify(sample, { headers })).toMatch(/mismatch|malformed/)
    }
  })

  test('the request is rejected without one of its headers', async () => {
    for (const name of Object.keys(sample.headers)) {
      const { [name]: __, ...headers } = sample.headers
      const expected = name === 'content-type' ? 'malformed' : 'missing'
      expect(await verify(sample, { headers })).toBe(expected)
    }
  })

  test('the request is rejected under another secret', async () => {
    const at = sample.secret.length - 2
    expect(await verify(sample, { secret: flipped(sample.secret, at) })).toBe('mismatch')
  })

  test('the request is accepted while its secret is one of several lines', async () => {
    const other = flipped(sample.secret, sample.secret.length - 2)
    expect(await verify(sample, { secret: `${other}\r\n${sample.secret}\n` })).toBeNull()
    expect(await verify(sample, { secret: `${sample.secret}\n${other}` })).toBeNull()
  })

  test('the request is rejected as soon as its time is beyond the tolerance', async () => {
    const { signedAt } = sample
    if (signedAt === undefined) return
    for (const [offset, expected] of [
      [-301, 'expired'],
      [-300, null],
      [300, null],
      [301, 'expired'],
    ] as const) {
      expect(await verify(sample, { nowSeconds: signedAt + offset })).toBe(expected)
    }
  })

  test.each([
    ['a missing secret', null],
    ['an empty secret', ' \n'],
    ['a secret of too many lines', 'a\nb\nc\nd\ne'],
  ])('%s is a failure of the server, not of the request', async (__, value) => {
    const { manifest, body, headers } = sample
    const request = { headers: new Headers(headers), body: Buffer.from(body), url: null }
    const outcome = verifySignature(port(value), manifest, { ...request, nowMillis: 0 })
    await expect(outcome).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })
})

test('one of several signatures of version 1 in a header is enough', async () => {
  const standard = SAMPLES.standardWebhooks!
  const stripe = SAMPLES.stripe!
  const signatures = (header: string) =>
    verify(standard, { headers: { ...standard.headers, 'webhook-signature': header } })
  expect(await signatures(`v1,AAAA ${STANDARD.signature}`)).toBeNull()
  expect(await signatures(STANDARD.signature.replace('v1,', 'v2,'))).toBe('malformed')
  expect(await signatures(`${'v1,AAAA '.repeat(16)}${STANDARD.signature}`)).toBe('malformed')
  const header = stripe.headers['stripe-signature']!
  const stripeWith = (text: string) => verify(stripe, { headers: { 'stripe-signature': text } })
  expect(await stripeWith(header.replace('v1=', 'v1=00, v1='))).toBeNull()
  expect(await stripeWith(header.replace('v1=', 'v0='))).toBe('malformed')
  expect(await stripeWith(`t=9999999999,${header}`)).toBe('malformed')
})

test('a time that is not one of seconds is rejected', async () => {
  const sign = (time: string) =>
    `t=${time},v1=${hmac('sha256', 'whsec_test_secret', `${time}.`, STRIPE_BODY).toString('hex')}`
  for (const time of ['1492774577.5', '-1492774577', '', '0x58fa', 'NaN', '9'.repeat(13)]) {
    const headers = { 'stripe-signature': sign(time) }
    expect(await verify(SAMPLES.stripe!, { headers })).toBe('malformed')
  }
})

test('an HMAC with a time covers both, and accepts upper-case digits', async () => {
  const timed: Sample = {
    ...SAMPLES.hmac!,
    manifest: {
      ...(SAMPLES.hmac!.manifest as Extract<SignatureManifest, { readonly scheme: 'hmac' }>),
      timestampHeader: 'x-time',
      toleranceSeconds: 10,
    },
    signedAt: 1_700_000_000,
  }
  const digest = hmac('sha512', 'Jefe', `1700000000.${timed.body}`).toString('hex').toUpperCase()
  const headers = { 'x-sig': `v1=${digest}`, 'x-time': '1700000000' }
  expect(await verify(timed, { headers })).toBeNull()
  expect(await verify(timed, { headers, nowSeconds: 1_700_000_011 })).toBe('expired')
  expect(await verify(timed, { headers: { ...headers, 'x-time': '1700000001' } })).toBe('mismatch')
  expect(await verify(timed, { headers: SAMPLES.hmac!.headers })).toBe('missing')
})

test('a signature of Twilio over JSON covers its digest in the URL', async () => {
  const body = '{"a":1}'
  const url = `https://example.com/hook?bodySHA256=${sha256Hex(body)}`
  const signature = hmac('sha1', '12345', url).toString('base64')
  const headers = { 'content-type': 'application/json', 'x-twilio-signature': signature }
  const twilio = SAMPLES.twilio!
  expect(await verify(twilio, { body, url, headers })).toBeNull()
  expect(await verify(twilio, { body: '{"a":2}', url, headers })).toBe('mismatch')
  expect(await verify(twilio, { url: url.replace('hook', 'hooks'), body, headers })).toBe(
    'mismatch',
  )
})

test('a secret of Standard Webhooks that is not base64 is a failure of the server', async () => {
  const outcome = verify(SAMPLES.standardWebhooks!, { secret: 'whsec_!!' })
  await expect(outcome).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})

describe('a bearer token', () => {
  const manifest = { scheme: 'jwt', issuer: 'https://issuer', subject: 'push' } as const
  const check = (headers: Record<string, string>, given: Partial<typeof manifest> = {}) => {
    const principal = (kind: 'user' | 'service', issuer: string, subject: string) => ({
      kind,
      key: principalOf({ kind, issuer, subject, roles: [] }),
      identityText: '',
    })
    const tokens = new Map([
      ['good', principal('service', 'https://issuer', 'push')],
      ['other-subject', principal('service', 'https://issuer', 'pull')],
      ['other-issuer', principal('service', 'https://other', 'push')],
      ['user', principal('user', 'https://issuer', 'push')],
    ])
    const verifyToken = async (token: string) => tokens.get(token) ?? NO_TOKEN()
    const request = { headers: new Headers(headers), body: new Uint8Array(), url: null }
    const { subject: _, ...anySubject } = manifest
    const rule = 'subject' in given ? anySubject : manifest
    return verifySignature(port(null, verifyToken), rule, { ...request, nowMillis: 0 })
  }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  test('a token of the issuer and the subject is accepted', async () => {
    expect(await check(bearer('good'))).toBeNull()
    expect(await check(bearer('other-subject'), { subject: undefined as never })).toBeNull()
  })

  test.each(['other-subject', 'other-issuer', 'user', 'unknown'])(
    'a token of another caller is rejected: %s',
    async (token) => expect(await check(bearer(token))).toBe('token'),
  )

  test('a request without a token is rejected', async () => {
    expect(await check({})).toBe('missing')
    expect(await check({ authorization: 'Basic abc' })).toBe('malformed')
  })

  test('keys that cannot be loaded are a failure of the server', async () => {
    const verifyToken = async () => {
      throw new Fault('UNAVAILABLE')
    }
    const request = { headers: new Headers(bearer('good')), body: new Uint8Array(), url: null }
    const outcome = verifySignature(port(null, verifyToken), manifest, { ...request, nowMillis: 0 })
    await expect(outcome).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })
})
