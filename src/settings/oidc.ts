/**
 * The OIDC provider file (contract/management.md, OIDC provider file), and what workload providers
 * share with it.
 */
import type { Fault } from '../errors/fault.ts'
import { absolutePath, FILE_RULES } from '../system/files.ts'
import { decodeBase64Url } from '../value/base64url.ts'
import { Secret } from '../value/secret.ts'
import { rule } from '../wire/rules.ts'
import { type Infer, schema } from '../wire/schema.ts'
import { isOrigin, type OriginScheme, parseUrl } from './addresses.ts'
import { differentStrings, isPlainUrl, jsonFile, printable } from './json-files.ts'
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
  /** True if its subjects are jobs of a platform, whose sessions are not refreshed. */
  readonly isWorkload: boolean
  /** Exact values of claims besides the discriminator; empty for a provider of people. */
  readonly requiredClaims: Readonly<Record<string, string>>
}

export interface NativeClient {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly resource: string | null
}

/** Makes the Fault of a field that breaks a rule. */
export type InvalidField = (field: string, rule: string) => Fault

const VARIABLE: VariableName = 'SERVICE_PLATFORM_OIDC_CONFIG'
const ORIGINS_MAX = 64
const SCOPES_MAX = 64
/** RFC 6749, section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const { read, rejected } = jsonFile('SERVER_OIDC_CONFIG_INVALID', VARIABLE)

const NativeClientFile = schema({
  authorizationEndpoint: printable(2048),
  tokenEndpoint: printable(2048),
  clientId: printable(512),
  scopes: [
    differentStrings(SCOPES_MAX),
    ':',
    rule('scope names of RFC 6749', (scopes: string[]) =>
      scopes.every((scope) => SCOPE.test(scope)),
    ),
  ],
  'resource?': printable(1024),
})

/** Fields of every provider. Rules between fields are checked by the functions below. */
export const ProviderFields = schema({
  providerId: printable(256),
  issuer: [
    printable(2048),
    ':',
    rule('an exact HTTPS issuer without query and fragment', isIssuer),
  ],
  discoveryUrl: printable(2048),
  audience: printable(1024),
  allowedOrigins: differentStrings(ORIGINS_MAX),
  discriminatorClaim: printable(256),
  discriminatorValue: printable(1024),
  algorithm: ['===', ...OIDC_ALGORITHMS],
  'requiredType?': printable(128),
  subjectPepper: [
    'string',
    ':',
    rule('URL-safe base64 without padding of exactly 32 bytes', isPepper),
  ],
  'allowLoopbackHttp?': 'boolean',
})
type ProviderFields = Infer<typeof ProviderFields>

const OidcFile = schema({ '...': ProviderFields, 'nativeClient?': NativeClientFile })
type NativeClientFile = Infer<typeof NativeClientFile>

/** Throws SERVER_OIDC_CONFIG_INVALID, or SERVER_CONFIGURATION_INVALID for a relative path. */
export function readOidcConfig(path: string): OidcProvider {
  if (absolutePath(path) === null) throw invalid(VARIABLE, FILE_RULES.not_absolute)
  return toProvider(read(path, OidcFile))
}

function toProvider({ nativeClient: client, ...file }: Infer<typeof OidcFile>): OidcProvider {
  const provider = providerFrom(file, rejected)
  const nativeClient = client === undefined ? null : nativeClientFrom(client, provider)
  return { ...provider, nativeClient, isWorkload: false, requiredClaims: {} }
}

/** Applies the rules between the fields of a provider. Throws what `rejected` makes. */
export function providerFrom(
  file: ProviderFields,
  rejected: InvalidField,
): Omit<OidcProvider, 'nativeClient' | 'isWorkload' | 'requiredClaims'> {
  const { audience, allowedOrigins, allowLoopbackHttp = false } = file
  const surroundings = { audience, allowedOrigins, allowLoopbackHttp }
  checkOrigins(surroundings, rejected)
  checkDiscoveryUrl(file.discoveryUrl, surroundings, rejected)
  return {
    ...file,
    allowLoopbackHttp,
    requiredType: file.requiredType ?? null,
    subjectPepper: new Secret(file.subjectPepper),
  }
}

/** Compared byte for byte with the token's `iss`, so only the canonical spelling can ever match. */
function isIssuer(text: string): boolean {
  const url = parseUrl(text)
  const canonical = url !== null && (url.href === text || url.href === `${text}/`)
  return canonical && isPlainUrl(url, ['https']) && !/[?#]/.test(text)
}

export function isPepper(text: string): boolean {
  try {
    return decodeBase64Url(text).length === 32
  } catch {
    return false
  }
}

interface Surroundings {
  readonly audience: string
  readonly allowedOrigins: readonly string[]
  readonly allowLoopbackHttp: boolean
}

/** The flag turns the list into one literal-loopback origin: it is for local conformance alone. */
function checkOrigins(
  { allowedOrigins, allowLoopbackHttp }: Surroundings,
  rejected: InvalidField,
): void {
  if (allowLoopbackHttp) {
    const [only] = allowedOrigins
    if (allowedOrigins.length !== 1 || !isOrigin(only!, ['loopback-http'])) {
      const rule = 'exactly one literal-loopback HTTP origin where allowLoopbackHttp is true'
      throw rejected('allowedOrigins', rule)
    }
  } else if (!allowedOrigins.every((origin) => isOrigin(origin, ['https']))) {
    throw rejected('allowedOrigins', 'canonical HTTPS origins such as https://idp.example.com')
  }
}

function checkDiscoveryUrl(
  text: string,
  { allowedOrigins }: Surroundings,
  rejected: InvalidField,
): void {
  const url = parseUrl(text)
  const allowed = url !== null && allowedOrigins.includes(url.origin)
  if (!allowed || !isPlainUrl(url, ['https', 'loopback-http'])) {
    throw rejected('discoveryUrl', 'a URL whose origin is one of allowedOrigins')
  }
}

function nativeClientFrom(client: NativeClientFile, surroundings: Surroundings): NativeClient {
  for (const field of ['authorizationEndpoint', 'tokenEndpoint'] as const) {
    const url = parseUrl(client[field])
    const secure = url !== null && (isPlainUrl(url, ['https']) || isConformance(url, surroundings))
    if (!secure) {
      throw rejected(`nativeClient.${field}`, 'an HTTPS URL without userinfo and fragment')
    }
  }
  const { resource = null } = client
  if (resource !== null) checkResource(resource, surroundings)
  return { ...client, resource }
}

function checkResource(text: string, { audience, allowLoopbackHttp }: Surroundings): void {
  const at = 'nativeClient.resource'
  const url = parseUrl(text)
  const schemes: OriginScheme[] = allowLoopbackHttp ? ['https', 'loopback-http'] : ['https']
  if (url === null || !isPlainUrl(url, schemes)) {
    throw rejected(at, 'an HTTPS URL without userinfo and fragment')
  }
  if (text !== audience) throw rejected(at, 'equal to audience')
}

function isConformance(url: URL, { allowLoopbackHttp, allowedOrigins }: Surroundings): boolean {
  return (
    allowLoopbackHttp && allowedOrigins.includes(url.origin) && isPlainUrl(url, ['loopback-http'])
  )
}
