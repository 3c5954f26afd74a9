/** The OIDC provider configuration file (Document 1). */
import { absolutePath, FILE_RULES } from '../system/files.ts'
import { decodeBase64Url } from '../value/base64url.ts'
import { Secret } from '../value/secret.ts'
import type { Json } from '../value/strict-json.ts'
import { isOrigin, type OriginScheme, parseUrl } from './addresses.ts'
import { type Fields, isPlainUrl, jsonFile } from './json-files.ts'
import { invalid } from './sources.ts'
import type { VariableName } from './variables.ts'

export const OIDC_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type OidcAlgorithm = (typeof OIDC_ALGORITHMS)[number]

export interface OidcProvider {
  readonly providerId: string
  readonly issuer: string
  readonly discoveryUrl: string
  readonly audience: string
  /** Origins that discovery and `jwks_uri` may have. */
  readonly allowedOrigins: readonly string[]
  readonly discriminatorClaim: string
  readonly discriminatorValue: string
  readonly algorithm: OidcAlgorithm
  readonly requiredType: string | null
  /** base64url of 32 bytes. */
  readonly subjectPepper: Secret
  readonly nativeClient: NativeClient | null
  readonly allowLoopbackHttp: boolean
}

export interface NativeClient {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly resource: string | null
}

const VARIABLE: VariableName = 'SERVICE_PLATFORM_OIDC_CONFIG'
const FIELDS = [
  'providerId',
  'issuer',
  'discoveryUrl',
  'audience',
  'allowedOrigins',
  'discriminatorClaim',
  'discriminatorValue',
  'algorithm',
  'requiredType',
  'subjectPepper',
  'nativeClient',
  'allowLoopbackHttp',
]
const NATIVE_FIELDS = ['authorizationEndpoint', 'tokenEndpoint', 'clientId', 'scopes', 'resource']
const ORIGINS_MAX = 64
const SCOPES_MAX = 64
/** RFC 6749, section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const { open, read, refused, strings, text } = jsonFile('SERVER_OIDC_CONFIG_INVALID', VARIABLE)

/** Throws SERVER_OIDC_CONFIG_INVALID, or SERVER_CONFIGURATION_INVALID for a relative path. */
export function readOidcConfig(path: string): OidcProvider {
  if (absolutePath(path) === null) throw invalid(VARIABLE, FILE_RULES.not_absolute)
  return parseOidcConfig(read(path))
}

export function parseOidcConfig(json: Json): OidcProvider {
  const fields = open(json, 'the file', FIELDS)
  const allowLoopbackHttp = boolean(fields, 'allowLoopbackHttp')
  const allowedOrigins = origins(fields, allowLoopbackHttp)
  const audience = text(fields, 'audience', 1024)
  return {
    providerId: text(fields, 'providerId', 256),
    issuer: issuer(fields),
    discoveryUrl: discoveryUrl(fields, allowedOrigins),
    audience,
    allowedOrigins,
    discriminatorClaim: text(fields, 'discriminatorClaim', 256),
    discriminatorValue: text(fields, 'discriminatorValue', 1024),
    algorithm: algorithm(fields),
    requiredType: fields.requiredType === undefined ? null : text(fields, 'requiredType', 128),
    subjectPepper: pepper(fields),
    nativeClient:
      fields.nativeClient === undefined
        ? null
        : nativeClient(fields.nativeClient, { audience, allowedOrigins, allowLoopbackHttp }),
    allowLoopbackHttp,
  }
}

function boolean(fields: Fields, key: string): boolean {
  const value = fields[key] ?? false
  if (typeof value !== 'boolean' || fields[key] === null) throw refused(key, 'true or false')
  return value
}

function issuer(fields: Fields): string {
  const value = text(fields, 'issuer', 2048)
  // Compared byte for byte with the token's `iss`, so only the canonical spelling can ever match.
  const url = parseUrl(value)
  const canonical = url !== null && (url.href === value || url.href === `${value}/`)
  if (!canonical || !isPlainUrl(url, ['https']) || /[?#]/.test(value)) {
    throw refused('issuer', 'an exact HTTPS issuer without query and fragment')
  }
  return value
}

/** The flag turns the list into one literal-loopback origin: it is for local conformance alone. */
function origins(fields: Fields, allowLoopbackHttp: boolean): readonly string[] {
  const list = strings(fields, 'allowedOrigins', ORIGINS_MAX)
  if (allowLoopbackHttp) {
    const [only] = list
    if (list.length !== 1 || !isOrigin(only!, ['loopback-http'])) {
      const rule = 'exactly one literal-loopback HTTP origin where allowLoopbackHttp is true'
      throw refused('allowedOrigins', rule)
    }
  } else if (!list.every((origin) => isOrigin(origin, ['https']))) {
    throw refused('allowedOrigins', 'canonical HTTPS origins such as https://idp.example.com')
  }
  return list
}

function discoveryUrl(fields: Fields, allowedOrigins: readonly string[]): string {
  const value = text(fields, 'discoveryUrl', 2048)
  const url = parseUrl(value)
  const allowed = url !== null && allowedOrigins.includes(url.origin)
  if (!allowed || !isPlainUrl(url, ['https', 'loopback-http'])) {
    throw refused('discoveryUrl', 'a URL whose origin is one of allowedOrigins')
  }
  return value
}

function algorithm(fields: Fields): OidcAlgorithm {
  const found = OIDC_ALGORITHMS.find((name) => name === fields.algorithm)
  if (found === undefined) throw refused('algorithm', `one of ${OIDC_ALGORITHMS.join(', ')}`)
  return found
}

function pepper(fields: Fields): Secret {
  const value = fields.subjectPepper
  if (typeof value !== 'string' || !isPepper(value)) {
    throw refused('subjectPepper', 'URL-safe base64 without padding of exactly 32 bytes')
  }
  return new Secret(value)
}

export function isPepper(value: string): boolean {
  try {
    return decodeBase64Url(value).length === 32
  } catch {
    return false
  }
}

interface Surroundings {
  readonly audience: string
  readonly allowedOrigins: readonly string[]
  readonly allowLoopbackHttp: boolean
}

function nativeClient(json: Json, surroundings: Surroundings): NativeClient {
  const fields = open(json, 'nativeClient', NATIVE_FIELDS)
  const scopes = strings(fields, 'scopes', SCOPES_MAX, 'nativeClient.scopes')
  if (!scopes.every((scope) => SCOPE.test(scope))) {
    throw refused('nativeClient.scopes', 'scope names of RFC 6749')
  }
  return {
    authorizationEndpoint: endpoint(fields, 'authorizationEndpoint', surroundings),
    tokenEndpoint: endpoint(fields, 'tokenEndpoint', surroundings),
    clientId: text(fields, 'clientId', 512, 'nativeClient.clientId'),
    scopes,
    resource: fields.resource === undefined ? null : resource(fields, surroundings),
  }
}

function endpoint(fields: Fields, key: string, surroundings: Surroundings): string {
  const at = `nativeClient.${key}`
  const value = text(fields, key, 2048, at)
  const url = parseUrl(value)
  const secure = url !== null && (isPlainUrl(url, ['https']) || isConformance(url, surroundings))
  if (!secure) throw refused(at, 'an HTTPS URL without userinfo and fragment')
  return value
}

function resource(fields: Fields, surroundings: Surroundings): string {
  const at = 'nativeClient.resource'
  const value = text(fields, 'resource', 1024, at)
  const url = parseUrl(value)
  const schemes: OriginScheme[] = surroundings.allowLoopbackHttp
    ? ['https', 'loopback-http']
    : ['https']
  if (url === null || !isPlainUrl(url, schemes)) {
    throw refused(at, 'an HTTPS URL without userinfo and fragment')
  }
  if (value !== surroundings.audience) throw refused(at, 'equal to audience')
  return value
}

function isConformance(url: URL, { allowLoopbackHttp, allowedOrigins }: Surroundings): boolean {
  return (
    allowLoopbackHttp && allowedOrigins.includes(url.origin) && isPlainUrl(url, ['loopback-http'])
  )
}
