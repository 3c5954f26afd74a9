/** Signs requests as a service does, by the description that verifies them. */
import { Fault } from '../../../errors/fault.ts'
import type { Secret } from '../../../value/secret.ts'
import { type SecretManifest, schemeOf } from './schemes.ts'
import { SIGNATURE_REJECTIONS } from './signed-requests.ts'
import { secretsOf } from './verification.ts'

export interface UnsignedRequest {
  /** The URL as the server knows it, or will know it by the `publicUrl` of the mount. */
  readonly url: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly nowMillis: number
  /** The ID of the event, for schemes that send one in a header that `headers` does not have. */
  readonly id: string
}

/** The URL that a service calls, and the headers that it adds. */
export interface SignatureHeaders {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Signs with the first secret of the value. Throws UNAVAILABLE for a secret that cannot be used,
 * and REQUEST_INVALID for a body that the service never signs.
 */
export function signRequest(
  manifest: SecretManifest,
  secret: Secret | null,
  { id, ...given }: UnsignedRequest,
): SignatureHeaders {
  const scheme = schemeOf(manifest)
  const [key] = secretsOf(manifest.secret, secret)
  const request = { ...given, url: scheme.address?.(given) ?? given.url }
  const { idHeader, toleranceSeconds } = scheme
  const stamp = {
    id: idHeader === null ? null : (given.headers.get(idHeader) ?? id),
    time: toleranceSeconds === null ? null : String(Math.floor(given.nowMillis / 1_000)),
  }
  const parts = scheme.covers(request, stamp)
  if (typeof parts === 'string') {
    throw new Fault('REQUEST_INVALID', { detail: SIGNATURE_REJECTIONS[parts] })
  }
  return { url: request.url, headers: scheme.write(scheme.sign(key, parts), stamp) }
}
