/** The description of each scheme that signs with a secret. */
import type { SignatureManifest } from '../../../value/http/routes.ts'
import { describedHmac, github } from './hmac-signatures.ts'
import type { SignatureScheme } from './signed-requests.ts'
import { slack, standardWebhooks, stripe } from './timed-signatures.ts'
import { twilio } from './twilio-signatures.ts'

/** A verification by a secret that the server and the service share. */
export type SecretManifest = Extract<SignatureManifest, { readonly secret: string }>

export function schemeOf(manifest: SecretManifest): SignatureScheme {
  switch (manifest.scheme) {
    case 'standardWebhooks':
      return standardWebhooks(manifest.toleranceSeconds)
    case 'stripe':
      return stripe(manifest.toleranceSeconds)
    case 'slack':
      return slack(manifest.toleranceSeconds)
    case 'github':
      return github
    case 'twilio':
      return twilio
    case 'hmac':
      return describedHmac(manifest)
  }
}
