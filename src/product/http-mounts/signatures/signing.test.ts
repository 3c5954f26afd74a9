/** Requests that are signed here are those that the server accepts, for every scheme. */
import { expect, test } from 'vitest'
import { isFault } from '../../../errors/fault.ts'
import { Secret } from '../../../value/secret.ts'
import type { SecretManifest } from './schemes.ts'
import { signRequest } from './signing.ts'
import { verifySignature } from './verification.ts'

const NOW = 1_700_000_000_999
const timed = (scheme: 'standardWebhooks' | 'stripe' | 'slack') =>
  ({ scheme, secret: 'S', toleranceSeconds: 1 }) as const
const described = {
  scheme: 'hmac',
  secret: 'S',
  header: 'x-sig',
  algorithm: 'sha512',
  encoding: 'base64',
  prefix: 'v1=',
} as const
const MANIFESTS: Record<string, SecretManifest> = {
  standardWebhooks: timed('standardWebhooks'),
  stripe: timed('stripe'),
  slack: timed('slack'),
  github: { scheme: 'github', secret: 'S' },
  twilio: { scheme: 'twilio', secret: 'S' },
  hmac: { ...described, encoding: 'hex', algorithm: 'sha1' },
  'hmac with a time': { ...described, timestampHeader: 'x-time', toleranceSeconds: 1 },
}

interface Given {
  readonly headers?: Record<string, string>
  readonly secret?: string
  readonly body?: string
}

function sign(manifest: SecretManifest, { headers = {}, secret, body = '{"a":1}' }: Given = {}) {
  const unsigned = {
    url: 'http://127.0.0.1:3210/v1/http/dev/a?b=c',
    headers: new Headers({ 'content-type': 'application/json', ...headers }),
    body: Buffer.from(body),
    nowMillis: NOW,
    id: 'sample_1',
  }
  const value = new Secret(secret ?? 'whsec_c2VjcmV0')
  const signed = signRequest(manifest, value, unsigned)
  for (const [name, text] of Object.entries(signed.headers)) unsigned.headers.set(name, text)
  return { ...unsigned, url: signed.url }
}

test.each(Object.entries(MANIFESTS))(
  'a request signed by %s is accepted',
  async (name, manifest) => {
    const isStandard = name === 'standardWebhooks'
    const value = new Secret(
      isStandard ? 'whsec_b3RoZXI=\nwhsec_c2VjcmV0' : 'other\nwhsec_c2VjcmV0',
    )
    const port = { secret: () => value, verifyToken: () => Promise.reject() }
    const signed = sign(manifest)
    expect(await verifySignature(port, manifest, signed)).toBeNull()
    const changed = { ...signed, body: Buffer.from('{"a":2}') }
    expect(await verifySignature(port, manifest, changed)).toBe('mismatch')
    const isTimed = 'toleranceSeconds' in manifest
    const late = { ...signed, nowMillis: NOW + 2_000 }
    expect(await verifySignature(port, manifest, late)).toBe(isTimed ? 'expired' : null)
  },
)

test('the ID of the event is the given one, and it is signed', () => {
  const { standardWebhooks, github, twilio } = MANIFESTS
  expect(sign(standardWebhooks!).headers.get('webhook-id')).toBe('sample_1')
  const given = sign(standardWebhooks!, { headers: { 'webhook-id': 'msg_7' } }).headers
  expect(given.get('webhook-id')).toBe('msg_7')
  expect(given.get('webhook-signature')).not.toBe(
    sign(standardWebhooks!).headers.get('webhook-signature'),
  )
  expect(sign(github!).headers.get('x-github-delivery')).toBe('sample_1')
  expect(sign(twilio!).headers.get('i-twilio-idempotency-token')).toBe('sample_1')
})

test('the first of several secrets signs', () => {
  const { github } = MANIFESTS
  const [first, both] = ['one', '\none\ntwo\n'].map((secret) => sign(github!, { secret }).headers)
  expect(both!.get('x-hub-signature-256')).toBe(first!.get('x-hub-signature-256'))
})

test('Twilio signs a form by its parameters, and any other body by a digest in the URL', () => {
  const { twilio } = MANIFESTS
  expect(sign(twilio!).url).toMatch(/\?b=c&bodySHA256=[0-9a-f]{64}$/)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  expect(sign(twilio!, { headers: form, body: 'From=1&To=2' }).url).toMatch(/\?b=c$/)
})

test('a secret of another form signs nothing', () => {
  for (const secret of ['', '\n \n', 'whsec_!!']) {
    let thrown: unknown = null
    try {
      sign(MANIFESTS.standardWebhooks!, { secret })
    } catch (error) {
      thrown = error
    }
    expect(isFault(thrown, 'UNAVAILABLE')).toBe(true)
  }
})
