/** External subjects are stored as keyed digests in the namespace of their provider. */
import type { ExternalIdentity } from '../../database/identity/identities.ts'
import { secretDigest } from '../../system/digests.ts'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { OidcProvider } from './provider.ts'

export function externalIdentity(
  { providerId, subjectPepper }: Pick<OidcProvider, 'providerId' | 'subjectPepper'>,
  subject: string,
): ExternalIdentity {
  const pepper = decodeBase64Url(subjectPepper.reveal())
  // The length separates provider ID and subject unambiguously.
  const length = new TextEncoder().encode(providerId).length
  const text = `${length}:${providerId}${subject}`
  return { providerId, subjectDigest: secretDigest(pepper, 'oidc-subject', text) }
}
