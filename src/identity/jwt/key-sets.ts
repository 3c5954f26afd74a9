/**
 * Parses key sets, and selects the keys that can verify one of the configured algorithms (RFC 7517,
 * section 4; RFC 7518, section 3; RFC 8725, section 3.1). Certificates and URLs in a key are
 * ignored.
 */
import { type CryptoKey, importJWK, type JWK } from 'jose'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseStrictJson,
} from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'

/** A key with one algorithm. A key for two algorithms is listed twice. */
export interface VerificationKey {
  readonly kid: string | null
  readonly algorithm: SignatureAlgorithm
  readonly key: CryptoKey
}

/** Bounds of the verifier (contract/wire.md, Bounds of the OIDC verifier). */
export const KEYS_MAX = 64
/** Minimum of RFC 7518, section 3.3. The maximum bounds the CPU time of a verification. */
const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
const JSON_LIMITS = { depthMax: 16, entriesMax: 1_000 }
const CURVES = {
  ES256: ['EC', 'P-256'],
  ES384: ['EC', 'P-384'],
  ES512: ['EC', 'P-521'],
  EdDSA: ['OKP', 'Ed25519'],
} as const

/** Throws ValidationError for a document that is not a key set. Unusable keys are left out. */
export async function readKeySet(
  document: Uint8Array | string,
  algorithms: readonly SignatureAlgorithm[],
): Promise<readonly VerificationKey[]> {
  const keys = readObject(parseStrictJson(document, JSON_LIMITS)).keys
  if (!Array.isArray(keys) || keys.length > KEYS_MAX)
    throw new ValidationError(`0 to ${KEYS_MAX} keys`)
  const objects = keys.map(readObject)
  const kids = objects.map((key) => key.kid).filter((kid) => kid !== undefined)
  // With two keys of one name, their order would decide which one verifies.
  if (new Set(kids).size !== kids.length) throw new ValidationError('each kid once')
  const imports = objects.flatMap((key) =>
    algorithms
      .filter((algorithm) => fits(key, algorithm))
      .map((algorithm) => importKey(key, algorithm)),
  )
  return (await Promise.all(imports)).filter((key) => key !== null)
}

/** Returns the own fields of a JSON object, without a prototype. Throws ValidationError. */
export function readObject(json: Json): JsonObject {
  if (!isJsonObject(json)) throw new ValidationError('a JSON object')
  return Object.assign(Object.create(null), json)
}

function fits(key: JsonObject, algorithm: SignatureAlgorithm): boolean {
  if (key.use !== undefined && key.use !== 'sig') return false
  if (key.key_ops !== undefined) {
    if (!Array.isArray(key.key_ops) || !key.key_ops.includes('verify')) return false
  }
  const names = algorithm === 'EdDSA' ? ['EdDSA', 'Ed25519'] : [algorithm]
  if (key.alg !== undefined && !names.includes(key.alg as string)) return false
  // A published private key is compromised.
  if (key.d !== undefined) return false
  switch (algorithm) {
    case 'RS256':
    case 'RS384':
    case 'RS512':
    case 'PS256':
    case 'PS384':
    case 'PS512':
      return key.kty === 'RSA' && rsaFits(key)
    case 'ES256':
    case 'ES384':
    case 'ES512':
    case 'EdDSA': {
      const [kty, crv] = CURVES[algorithm]
      return key.kty === kty && key.crv === crv
    }
  }
}

function rsaFits({ n, e }: JsonObject): boolean {
  const bits = bitLength(n)
  const exponent = bitLength(e)
  // With an exponent of 1, any text has a valid signature.
  return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX && exponent >= 2 && exponent <= 64
}

/** Returns 0 for a text that is not a canonical number. */
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

/** Imports the numbers of a key only. Null where they are not a valid key. */
async function importKey(
  { kid, kty, crv, n, e, x, y }: JsonObject,
  algorithm: SignatureAlgorithm,
): Promise<VerificationKey | null> {
  const numbers = Object.entries({ kty, crv, n, e, x, y }).filter(([, value]) => {
    return value !== undefined
  })
  if (kid !== undefined && typeof kid !== 'string') return null
  try {
    const key = await importJWK(Object.fromEntries(numbers) as JWK, algorithm)
    return key instanceof Uint8Array ? null : { kid: kid ?? null, algorithm, key: key as CryptoKey }
  } catch {
    return null
  }
}
