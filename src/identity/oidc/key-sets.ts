/**
 * A provider's published keys, reduced to those that can verify the one configured algorithm (RFC
 * 7517, section 4; RFC 7518, section 3; RFC 8725, section 3.1). Certificates and URLs inside of a
 * key are not looked at.
 */
import { type CryptoKey, importJWK, type JWK } from 'jose'
import { decodeBase64Url } from '../../value/base64url.ts'
import { Malformed } from '../../value/malformed.ts'
import { type Json, parseStrictJson } from '../../value/strict-json.ts'
import { KEYS_MAX, type OidcAlgorithm } from './provider.ts'

export interface VerificationKey {
  readonly kid: string | null
  readonly key: CryptoKey
}

type JsonObject = { readonly [key: string]: Json }

/** RFC 7518, section 3.3, and a size whose verification nobody can make us pay for. */
const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
const JSON_LIMITS = { depthMax: 16, entriesMax: 1_000 }

/** Throws Malformed for a document that is no key set. A key that does not fit is left out. */
export async function readKeySet(
  document: Uint8Array,
  algorithm: OidcAlgorithm,
): Promise<readonly VerificationKey[]> {
  const keys = readObject(parseStrictJson(document, JSON_LIMITS)).keys
  if (!Array.isArray(keys) || keys.length > KEYS_MAX) throw new Malformed(`0 to ${KEYS_MAX} keys`)
  const objects = keys.map(readObject)
  const kids = objects.map((key) => key.kid).filter((kid) => kid !== undefined)
  // Which of two keys with one name verifies would be up to their order.
  if (new Set(kids).size !== kids.length) throw new Malformed('each kid once')
  const fitting = objects.filter((key) => fits(key, algorithm))
  const imported = await Promise.all(fitting.map((key) => importKey(key, algorithm)))
  return imported.filter((key) => key !== null)
}

/** The fields of a JSON object and nothing that it inherits. Throws Malformed. */
export function readObject(json: Json): JsonObject {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) {
    throw new Malformed('a JSON object')
  }
  return Object.assign(Object.create(null), json)
}

function fits(key: JsonObject, algorithm: OidcAlgorithm): boolean {
  if (key.use !== undefined && key.use !== 'sig') return false
  if (key.key_ops !== undefined) {
    if (!Array.isArray(key.key_ops) || !key.key_ops.includes('verify')) return false
  }
  const names = algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm]
  if (key.alg !== undefined && !names.includes(key.alg as string)) return false
  // A private key that was published is nobody's alone.
  if (key.d !== undefined) return false
  switch (algorithm) {
    case 'RS256':
    case 'PS256':
      return key.kty === 'RSA' && rsaFits(key)
    case 'ES256':
      return key.kty === 'EC' && key.crv === 'P-256'
    case 'EdDSA':
      return key.kty === 'OKP' && key.crv === 'Ed25519'
  }
}

function rsaFits({ n, e }: JsonObject): boolean {
  const bits = bitLength(n)
  const exponent = bitLength(e)
  // An exponent of 1 would let everybody sign.
  return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX && exponent >= 2 && exponent <= 64
}

/** 0 for what is no canonical number. */
function bitLength(field: Json | undefined): number {
  if (typeof field !== 'string') return 0
  try {
    const bytes = decodeBase64Url(field)
    const first = bytes[0] ?? 0
    return first === 0 ? 0 : bytes.length * 8 - (Math.clz32(first) - 24)
  } catch {
    return 0
  }
}

/** Only the numbers of the key go in; null where they are no key. */
async function importKey(
  { kid, kty, crv, n, e, x, y }: JsonObject,
  algorithm: OidcAlgorithm,
): Promise<VerificationKey | null> {
  const numbers = Object.entries({ kty, crv, n, e, x, y }).filter(([, value]) => {
    return value !== undefined
  })
  if (kid !== undefined && typeof kid !== 'string') return null
  try {
    const key = await importJWK(Object.fromEntries(numbers) as JWK, algorithm)
    return key instanceof Uint8Array ? null : { kid: kid ?? null, key: key as CryptoKey }
  } catch {
    return null
  }
}
