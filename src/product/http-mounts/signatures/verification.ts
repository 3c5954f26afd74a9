/** Verifies that a request comes from the service that a hook expects. */
import { isFault } from '../../../errors/fault.ts'
import type { SignatureManifest } from '../../../value/http/routes.ts'
import type { Principal } from '../../../value/identities.ts'
import type { Secret } from '../../../value/secret.ts'
import { schemeOf } from './schemes.ts'
import {
  type SignatureRejection,
  type SignedRequest,
  unusable,
  verifyWith,
} from './signed-requests.ts'

export interface VerificationPort {
  /** Returns a secret of the Environment; null if there is none. */
  readonly secret: (name: string) => Secret | null
  /** Verifies a functional token. Rejects with FUNCTIONAL_TOKEN_INVALID. */
  readonly verifyToken: (token: string) => Promise<Principal>
}

/** @limit HTTP mounts: lines of a secret, each of which is accepted while one replaces another */
export const SECRET_LINES_MAX = 4
const BEARER = /^Bearer ([!-~]+)$/i

/**
 * Returns why the request is rejected; null for an accepted one. Rejects with UNAVAILABLE where the
 * server cannot tell, such as without the secret.
 */
export async function verifySignature(
  port: VerificationPort,
  manifest: SignatureManifest,
  request: SignedRequest,
): Promise<SignatureRejection | null> {
  if (manifest.scheme === 'jwt') return verifyToken(port, manifest, request)
  const secrets = secretsOf(manifest.secret, port.secret(manifest.secret))
  return verifyWith(schemeOf(manifest), request, secrets)
}

/**
 * Returns the secrets of a value, one in each line. Throws UNAVAILABLE for a value that is missing,
 * and for one with too many lines.
 */
export function secretsOf(name: string, value: Secret | null): readonly [string, ...string[]] {
  if (value === null) throw unusable(`the secret ${name} is not set`)
  const lines = value.reveal().split(/\r?\n/)
  const [first, ...others] = lines.filter((line) => line.trim() !== '')
  const count = first === undefined ? 0 : 1 + others.length
  if (first !== undefined && count <= SECRET_LINES_MAX) return [first, ...others]
  throw unusable(`the secret ${name} has ${count} lines, not 1 to ${SECRET_LINES_MAX}`)
}

async function verifyToken(
  port: VerificationPort,
  { issuer, subject }: Extract<SignatureManifest, { readonly scheme: 'jwt' }>,
  { headers }: SignedRequest,
): Promise<SignatureRejection | null> {
  const authorization = headers.get('authorization')
  if (authorization === null) return 'missing'
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined) return 'malformed'
  try {
    const { key } = await port.verifyToken(token)
    const named = JSON.parse(key) as readonly string[]
    const expected = ['service', issuer, subject ?? named[2]]
    return expected.every((part, i) => part === named[i]) ? null : 'token'
  } catch (error) {
    if (isFault(error, 'FUNCTIONAL_TOKEN_INVALID')) return 'token'
    throw error
  }
}
