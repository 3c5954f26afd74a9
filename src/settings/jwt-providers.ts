/**
 * The JWT descriptor inside the Product root (contract/wire.md, Product auth descriptor): the
 * issuers whose tokens identify the callers of Functions. The keys of an inline set are checked
 * where they are imported.
 */
import {
  type ClaimPath,
  type JwtProvider,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
} from '../value/jwt-providers.ts'
import { integer } from '../wire/fields.ts'
import { rule, someEntries } from '../wire/rules.ts'
import { type Infer, schema } from '../wire/schema.ts'
import { parseUrl } from './addresses.ts'
import { differentStrings, isPlainUrl, jsonFile, printable } from './json-files.ts'
import type { VariableName } from './variables.ts'

const VARIABLE: VariableName = 'SERVICE_PRODUCT_AUTH_CONFIG'
const PROVIDERS_MAX = 16
const KEYS_MAX = 64
/** Members of a JWK that no public key has. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const PUBLIC_KEY_TYPES: readonly unknown[] = ['RSA', 'EC', 'OKP']
const TOLERANCE_SECONDS = 60
const LIFETIME_SECONDS = 86_400
const { read, rejected } = jsonFile('SERVER_CONFIGURATION_INVALID', VARIABLE)

/** A public key. A private key in this file is an error rather than ignored. */
const Jwk = schema([
  { '+': 'ignore' },
  ':',
  rule('a public key of RSA, EC or OKP', (key: object) => {
    const isPublic = PUBLIC_KEY_TYPES.includes((key as { readonly kty?: unknown }).kty)
    return isPublic && !PRIVATE_MEMBERS.some((member) => Object.hasOwn(key, member))
  }),
])

const KeySet = schema({
  keys: [[Jwk, '[]'], ':', someEntries(KEYS_MAX, `a list of 1 to ${KEYS_MAX} keys`)],
})

/** The name of a claim, or a JSON Pointer (RFC 6901) to one inside of another. */
const Claim = schema([
  printable(256),
  ':',
  rule('a claim, or a JSON Pointer to one', (name: string) => !/^\/.*~(?![01])/.test(name)),
])

const ProviderFields = schema({
  name: printable(64),
  kind: "'user' | 'service'",
  issuer: printable(2048),
  audience: printable(1024),
  algorithms: [
    differentStrings(SIGNATURE_ALGORITHMS.length),
    ':',
    rule(`some of ${SIGNATURE_ALGORITHMS.join(', ')}`, (names: string[]) =>
      names.every(isAlgorithm),
    ),
  ],
  'jwksUri?': [
    printable(2048),
    ':',
    rule('an HTTPS URL, or HTTP of a literal loopback address', isKeySetUrl),
  ],
  'jwks?': KeySet,
  'requiredType?': printable(128),
  'claims?': { 'subject?': Claim, 'roles?': Claim, 'email?': Claim },
  'clockToleranceSeconds?': integer(0, 300),
  'maximumLifetimeSeconds?': integer(1, 2_592_000),
})

const Provider = schema([
  ProviderFields,
  ':',
  rule('exactly one of jwksUri and jwks', ({ jwksUri, jwks }: Infer<typeof ProviderFields>) => {
    return (jwksUri === undefined) !== (jwks === undefined)
  }),
])

const Descriptor = schema({
  version: '1',
  providers: [
    [Provider, '[]'],
    ':',
    someEntries(PROVIDERS_MAX, `a list of 1 to ${PROVIDERS_MAX} providers`),
  ],
})

/** Throws SERVER_CONFIGURATION_INVALID. */
export function readJwtProviders(path: string): readonly JwtProvider[] {
  const { providers } = read(path, Descriptor)
  for (const key of ['name', 'issuer'] as const) {
    const values = new Set(providers.map((provider) => provider[key]))
    if (values.size !== providers.length) throw rejected('providers', `each ${key} once`)
  }
  return providers.map(toProvider)
}

function toProvider(provider: Infer<typeof Provider>): JwtProvider {
  const { name, kind, issuer, audience, jwksUri, jwks, claims = {} } = provider
  return {
    name,
    kind,
    issuer,
    audience,
    algorithms: SIGNATURE_ALGORITHMS.filter((each) => provider.algorithms.includes(each)),
    keys: jwksUri === undefined ? { document: JSON.stringify(jwks) } : { uri: jwksUri },
    requiredType: provider.requiredType ?? null,
    claims: {
      subject: claimPath(claims.subject) ?? ['sub'],
      roles: claimPath(claims.roles),
      email: claimPath(claims.email),
    },
    clockToleranceSeconds: provider.clockToleranceSeconds ?? TOLERANCE_SECONDS,
    maximumLifetimeSeconds: provider.maximumLifetimeSeconds ?? LIFETIME_SECONDS,
  }
}

function isAlgorithm(name: string): name is SignatureAlgorithm {
  return (SIGNATURE_ALGORITHMS as readonly string[]).includes(name)
}

function isKeySetUrl(text: string): boolean {
  const url = parseUrl(text)
  return url !== null && isPlainUrl(url, ['https', 'loopback-http'])
}

function claimPath(name: string | undefined): ClaimPath | null {
  if (name === undefined) return null
  if (!name.startsWith('/')) return [name]
  const tokens = name.slice(1).split('/')
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}
