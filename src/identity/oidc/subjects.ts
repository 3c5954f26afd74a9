/** How an external subject is known here: by a keyed digest, in its provider's namespace. */
import type { ExternalIdentity } from '../../database/identity/identities.ts'
import { secretDigest } from '../../system/digests.ts'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { OidcProvider } from './provider.ts'

export function externalIdentity(
  { providerId, subjectPepper }: Pick<OidcProvider, 'providerId' | 'subjectPepper'>,
  subject: string,
): ExternalIdentity {
  const pepper = decodeBase64Url(subjectPepper.reveal())
  // The length keeps a provider's name and a subject from changing places.
  const length = new TextEncoder().encode(providerId).length
  const text = `${length}:${providerId}${subject}`
  return { providerId, subjectDigest: secretDigest(pepper, 'oidc-subject', text) }
}
