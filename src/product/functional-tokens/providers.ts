/**
 * Tokens of the configured JWT providers: who signed one, for whom, for how long, and what its
 * claims make of the caller. The provider is the one whose issuer the token names, exactly.
 */
import { Fault } from '../../errors/fault.ts'
import { readKeySet, type VerificationKey } from '../../identity/jwt/key-sets.ts'
import { PublishedKeys, selectKey } from '../../identity/jwt/published-keys.ts'
import {
  checkHeader,
  checkSignature,
  checkSubject,
  checkTimes,
  type KeySource,
  readToken,
} from '../../identity/jwt/tokens.ts'
import type { Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ProvidedIdentity } from '../../value/identities.ts'
import type { ClaimPath, JwtProvider } from '../../value/jwt-providers.ts'
import { Malformed } from '../../value/malformed.ts'
import { isJsonObject, type Json, type JsonObject } from '../../value/strict-json.ts'

export interface ProvidersOptions {
  readonly providers: readonly JwtProvider[]
  readonly system: Pick<System, 'monotonicMillis'>
  readonly log: Logger
  /** For tests. */
  readonly network?: Network
}

interface Trusted {
  readonly provider: JwtProvider
  /** Throws UNAVAILABLE. */
  readonly keys: KeySource
}

export type JwtProviders = ReadonlyMap<string, Trusted>

export interface VerifiedJwt {
  readonly identity: ProvidedIdentity
  readonly expiresAtMillis: number
  /** Whether the key that signed it is still one of its provider. Throws UNAVAILABLE. */
  readonly isTrusted: () => Promise<boolean>
}

/**
 * By issuer. Connects to nothing: published keys are loaded when a token needs them. Throws
 * SERVER_CONFIGURATION_INVALID where a key set of the descriptor has no key that fits.
 */
export async function openJwtProviders(options: ProvidersOptions): Promise<JwtProviders> {
  const trusted = new Map<string, Trusted>()
  for (const provider of options.providers) {
    trusted.set(provider.issuer, { provider, keys: await openKeys(provider, options) })
  }
  return trusted
}

async function openKeys(
  provider: JwtProvider,
  { system, log, network }: ProvidersOptions,
): Promise<KeySource> {
  const fixed = await readFixedKeys(provider)
  if (fixed !== null) return { find: async (kid, algorithm) => selectKey(fixed, kid, algorithm) }
  const { name, algorithms, keys } = provider
  const { uri } = keys as { readonly uri: string }
  return new PublishedKeys({
    publisher: name,
    algorithms,
    allowedOrigins: [new URL(uri).origin],
    allowLoopbackHttp: true,
    locate: async () => uri,
    unavailable: 'UNAVAILABLE',
    system,
    log,
    network,
  })
}

/**
 * The keys that stand in the descriptor; null where they are published. Throws
 * SERVER_CONFIGURATION_INVALID where none of them fits.
 */
export async function readFixedKeys({
  name,
  algorithms,
  keys,
}: JwtProvider): Promise<readonly VerificationKey[] | null> {
  if ('uri' in keys) return null
  try {
    const found = await readKeySet(keys.document, algorithms)
    if (found.length > 0) return found
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
  }
  const rule = `provider ${name}: a key set with a key of its algorithms, each kid once`
  const violations = [{ path: 'SERVICE_PRODUCT_AUTH_CONFIG', rule }]
  throw new Fault('SERVER_CONFIGURATION_INVALID', { detail: rule, violations })
}

/**
 * Throws Malformed or jose's own error for a token that is not good enough, UNAVAILABLE where the
 * keys are not known. Keys are asked for only after everything that needs none fits.
 */
export async function verifyJwt(
  providers: JwtProviders,
  token: string,
  nowMillis: number,
): Promise<VerifiedJwt> {
  const { header, claims } = readToken(token)
  const trusted = typeof claims.iss === 'string' ? providers.get(claims.iss) : undefined
  if (trusted === undefined) throw new Malformed('the issuer of a provider', 'iss')
  const { provider, keys } = trusted
  const { kid, algorithm } = checkHeader(header, provider)
  const { aud } = claims
  if (!(Array.isArray(aud) ? aud : [aud]).includes(provider.audience)) {
    throw new Malformed('the audience of the provider', 'aud')
  }
  const { clockToleranceSeconds } = provider
  const exp = checkTimes(claims, nowMillis / 1000, {
    skewSeconds: clockToleranceSeconds,
    graceSeconds: clockToleranceSeconds,
    lifetimeSecondsMax: provider.maximumLifetimeSeconds,
  })
  const identity = identityOf(provider, claims)
  const key = await keys.find(kid, algorithm)
  await checkSignature(token, key)
  return {
    identity,
    expiresAtMillis: (exp + clockToleranceSeconds) * 1000,
    isTrusted: async () => (await keys.find(kid, algorithm)) === key,
  }
}

function identityOf({ kind, issuer, claims }: JwtProvider, said: JsonObject): ProvidedIdentity {
  const subject = checkSubject(claimAt(said, claims.subject))
  const roles = rolesOf(claims.roles === null ? undefined : claimAt(said, claims.roles))
  const email = claims.email === null ? undefined : claimAt(said, claims.email)
  if (email === undefined) return { kind, subject, issuer, roles }
  if (typeof email !== 'string') throw new Malformed('a text', 'email')
  return { kind, subject, issuer, roles, email }
}

function claimAt(claims: JsonObject, path: ClaimPath): Json | undefined {
  let value: Json | undefined = claims as { [key: string]: Json }
  for (const key of path) {
    if (!isJsonObject(value)) return undefined
    value = Object.hasOwn(value, key) ? value[key] : undefined
    if (value === undefined) return undefined
  }
  return value
}

/** A list of texts, or one text with blanks between the roles, as `scope` is (RFC 8693, 4.2). */
function rolesOf(claim: Json | undefined): readonly string[] {
  if (claim === undefined) return []
  const roles = typeof claim === 'string' ? claim.split(' ').filter((role) => role !== '') : claim
  if (!Array.isArray(roles) || !roles.every((role) => typeof role === 'string')) {
    throw new Malformed('texts', 'roles')
  }
  return roles
}
