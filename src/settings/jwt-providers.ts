/**
 * The JWT descriptor inside the Product root (wire decisions, section 4): whose tokens say who a
 * Function's caller is. Whether the keys of an inline set fit is left to whoever imports them.
 */
import {
  type ClaimMapping,
  type ClaimPath,
  type JwtProvider,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
} from '../value/jwt-providers.ts'
import type { Json } from '../value/strict-json.ts'
import { parseUrl } from './addresses.ts'
import { type Fields, isPlainUrl, jsonFile } from './json-files.ts'
import type { VariableName } from './variables.ts'

const VARIABLE: VariableName = 'SERVICE_PRODUCT_AUTH_CONFIG'
const PROVIDER_FIELDS = [
  'name',
  'kind',
  'issuer',
  'audience',
  'algorithms',
  'jwksUri',
  'jwks',
  'requiredType',
  'claims',
  'clockToleranceSeconds',
  'maximumLifetimeSeconds',
]
const PROVIDERS_MAX = 16
const KEYS_MAX = 64
/** Members of a JWK that no public key has. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const PUBLIC_KEY_TYPES: readonly unknown[] = ['RSA', 'EC', 'OKP']
const TOLERANCE = { least: 0, most: 300, otherwise: 60 }
const LIFETIME = { least: 1, most: 2_592_000, otherwise: 86_400 }
const { open, read, refused, strings, text } = jsonFile('SERVER_CONFIGURATION_INVALID', VARIABLE)

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readJwtProviders(path: string): readonly JwtProvider[] {
  const fields = open(read(path), 'the file', ['version', 'providers'])
  if (fields.version !== 1) throw refused('version', 'exactly 1')
  const list = fields.providers
  if (!Array.isArray(list) || list.length === 0 || list.length > PROVIDERS_MAX) {
    throw refused('providers', `a list of 1 to ${PROVIDERS_MAX} providers`)
  }
  const providers = list.map((json, i) => parseProvider(json, `providers[${i}]`))
  for (const key of ['name', 'issuer'] as const) {
    const values = new Set(providers.map((provider) => provider[key]))
    if (values.size !== providers.length) throw refused('providers', `each ${key} once`)
  }
  return providers
}

function parseProvider(json: Json, at: string): JwtProvider {
  const fields = open(json, at, PROVIDER_FIELDS)
  const { requiredType } = fields
  return {
    name: text(fields, 'name', 64, `${at}.name`),
    kind: kind(fields, at),
    issuer: text(fields, 'issuer', 2048, `${at}.issuer`),
    audience: text(fields, 'audience', 1024, `${at}.audience`),
    algorithms: algorithms(fields, at),
    keys: keys(fields, at),
    requiredType:
      requiredType === undefined ? null : text(fields, 'requiredType', 128, `${at}.requiredType`),
    claims: claims(fields.claims, `${at}.claims`),
    clockToleranceSeconds: seconds(fields, 'clockToleranceSeconds', TOLERANCE, at),
    maximumLifetimeSeconds: seconds(fields, 'maximumLifetimeSeconds', LIFETIME, at),
  }
}

function kind(fields: Fields, at: string): JwtProvider['kind'] {
  if (fields.kind === 'user' || fields.kind === 'service') return fields.kind
  throw refused(`${at}.kind`, 'user or service')
}

function algorithms(fields: Fields, at: string): readonly SignatureAlgorithm[] {
  const named = strings(fields, 'algorithms', SIGNATURE_ALGORITHMS.length, `${at}.algorithms`)
  const known = SIGNATURE_ALGORITHMS.filter((algorithm) => named.includes(algorithm))
  if (known.length !== named.length) {
    throw refused(`${at}.algorithms`, `some of ${SIGNATURE_ALGORITHMS.join(', ')}`)
  }
  return known
}

function keys(fields: Fields, at: string): JwtProvider['keys'] {
  const { jwksUri, jwks } = fields
  if ((jwksUri === undefined) === (jwks === undefined)) {
    throw refused(at, 'exactly one of jwksUri and jwks')
  }
  if (jwks !== undefined) return { document: keySet(jwks, `${at}.jwks`) }
  const uri = text(fields, 'jwksUri', 2048, `${at}.jwksUri`)
  const url = parseUrl(uri)
  if (url === null || !isPlainUrl(url, ['https', 'loopback-http'])) {
    throw refused(`${at}.jwksUri`, 'an HTTPS URL, or HTTP of a literal loopback address')
  }
  return { uri }
}

function keySet(json: Json, at: string): string {
  const list = open(json, at, ['keys']).keys
  if (!Array.isArray(list) || list.length === 0 || list.length > KEYS_MAX) {
    throw refused(`${at}.keys`, `a list of 1 to ${KEYS_MAX} keys`)
  }
  for (const [i, key] of list.entries()) {
    if (!isPublicKey(key)) throw refused(`${at}.keys[${i}]`, 'a public key of RSA, EC or OKP')
  }
  return JSON.stringify(json)
}

/** A private key does not belong in this file, so one is told instead of left out. */
function isPublicKey(json: Json): boolean {
  if (json === null || typeof json !== 'object' || Array.isArray(json)) return false
  return (
    PUBLIC_KEY_TYPES.includes(json.kty) &&
    !PRIVATE_MEMBERS.some((member) => Object.hasOwn(json, member))
  )
}

function claims(json: Json | undefined, at: string): ClaimMapping {
  const fields = json === undefined ? {} : open(json, at, ['subject', 'roles', 'email'])
  return {
    subject: claim(fields, 'subject', at) ?? ['sub'],
    roles: claim(fields, 'roles', at),
    email: claim(fields, 'email', at),
  }
}

/** The name of a claim, or a JSON Pointer (RFC 6901) to one inside of another. */
function claim(fields: Fields, key: string, at: string): ClaimPath | null {
  if (fields[key] === undefined) return null
  const name = text(fields, key, 256, `${at}.${key}`)
  if (!name.startsWith('/')) return [name]
  if (/~(?![01])/.test(name)) throw refused(`${at}.${key}`, 'a claim, or a JSON Pointer to one')
  const tokens = name.slice(1).split('/')
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function seconds(
  fields: Fields,
  key: string,
  { least, most, otherwise }: typeof TOLERANCE,
  at: string,
): number {
  const value = fields[key]
  if (value === undefined) return otherwise
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw refused(`${at}.${key}`, `a whole number from ${least} to ${most}`)
  }
  return value
}
