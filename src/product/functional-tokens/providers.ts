/**
 * Verifies tokens of the configured JWT providers: signature, audience and lifetime, and maps the
 * claims to an identity. The provider is the one whose issuer equals that of the token exactly.
 */
import { Fault } from '../../errors/fault.ts'
import { readKeySet, type VerificationKey } from '../../identity/jwt/key-sets.ts'
import { type KeySetStore, PublishedKeys, selectKey } from '../../identity/jwt/published-keys.ts'
import { ROLES_MAX, TokenRejection } from '../../identity/jwt/rejections.ts'
import {
  checkHeader,
  checkSignature,
  checkSubject,
  checkTimes,
  type KeySource,
  readToken,
} from '../../identity/jwt/tokens.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import {
  findPublishedKeySet,
  type KeyPublisher,
  type PublishedKeySet,
  retainPublishedKeySets,
  writePublishedKeySet,
} from '../../storage/control/published-keys.ts'
import type { Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { ProvidedIdentity } from '../../value/identities.ts'
import type { ClaimPath, JwtProvider } from '../../value/jwt-providers.ts'
import { isJsonObject, type Json, type JsonObject } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'

/** Stores the newest key set of a publisher. */
export type WriteKeySet = (publisher: KeyPublisher, keySet: PublishedKeySet) => void

export interface ProvidersOptions {
  readonly providers: readonly JwtProvider[]
  readonly system: Pick<System, 'nowMillis' | 'monotonicMillis'>
  readonly log: Logger
  /** Stores published keys across restarts; null keeps them in memory only. */
  readonly control: ControlDatabase | null
  /** Stores keys; absent in the process that owns the control database. */
  readonly writeKeySet?: WriteKeySet
  /** Replaced by tests. */
  readonly network?: Network
}

interface Trusted {
  readonly provider: JwtProvider
  /** Throws UNAVAILABLE. */
  readonly keys: KeySource & { readonly revision: number }
}

export type JwtProviders = ReadonlyMap<string, Trusted>

export interface VerifiedJwt {
  readonly identity: ProvidedIdentity
  readonly expiresAtMillis: number
  /**
   * Resolves whether the provider still publishes the key that signed the token. Throws
   * UNAVAILABLE.
   */
  readonly isTrusted: () => Promise<boolean>
}

/**
 * Opens the providers, keyed by issuer. Makes no connection: published keys are loaded when a token
 * needs them. Throws SERVER_CONFIGURATION_INVALID if a key set of the descriptor has no usable key.
 */
export async function openJwtProviders(options: ProvidersOptions): Promise<JwtProviders> {
  const { providers, control, writeKeySet } = options
  if (writeKeySet === undefined) {
    control?.transaction((tx) => retainPublishedKeySets(tx, providers.flatMap(publisherOf)))
  }
  const trusted = new Map<string, Trusted>()
  for (const provider of providers) {
    trusted.set(provider.issuer, { provider, keys: await openKeys(provider, options) })
  }
  return trusted
}

function publisherOf({ issuer, keys }: JwtProvider): readonly KeyPublisher[] {
  return 'uri' in keys ? [{ issuer, uri: keys.uri }] : []
}

async function openKeys(
  provider: JwtProvider,
  { system, log, control, writeKeySet, network }: ProvidersOptions,
): Promise<Trusted['keys']> {
  const fixed = await readFixedKeys(provider)
  if (fixed !== null) {
    return { revision: 0, find: async (kid, algorithm) => selectKey(fixed, kid, algorithm) }
  }
  const { name, issuer, algorithms, keys } = provider
  const { uri } = keys as { readonly uri: string }
  const published = new PublishedKeys({
    publisher: name,
    algorithms,
    allowedOrigins: [new URL(uri).origin],
    allowLoopbackHttp: true,
    locate: async () => uri,
    unavailable: 'UNAVAILABLE',
    store: control === null ? null : keySetStore(control, { issuer, uri }, writeKeySet),
    system,
    log,
    network,
  })
  await published.restore()
  return published
}

function keySetStore(
  control: ControlDatabase,
  publisher: KeyPublisher,
  writeKeySet: WriteKeySet = (of, keySet) =>
    control.transaction((tx) => writePublishedKeySet(tx, of, keySet)),
): KeySetStore {
  return {
    read() {
      const found = control.read((reader) => findPublishedKeySet(reader, publisher))
      if (found === null) return null
      const { document, fetchedAtMicros } = found
      return { document, fetchedAtMillis: Number(fetchedAtMicros / 1000n) }
    },
    write({ document, fetchedAtMillis }) {
      const fetchedAtMicros = BigInt(fetchedAtMillis) * 1000n
      writeKeySet(publisher, { document, fetchedAtMicros })
    },
  }
}

/**
 * Reads the keys in the descriptor; returns null if it names a URI. Throws
 * SERVER_CONFIGURATION_INVALID if no key is usable.
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
    if (!(error instanceof ValidationError)) throw error
  }
  const rule = `provider ${name}: a key set with a key of its algorithms, each kid once`
  const violations = [{ path: 'SERVICE_PRODUCT_AUTH_CONFIG', rule }]
  throw new Fault('SERVER_CONFIGURATION_INVALID', { detail: rule, violations })
}

/**
 * Verifies a token. Throws TokenRejection if it fails a check, UNAVAILABLE if the keys cannot be
 * loaded. Keys are loaded only after all other checks have passed, so that a token that fails one
 * of them causes no request.
 */
export async function verifyJwt(
  providers: JwtProviders,
  token: string,
  nowMillis: number,
): Promise<VerifiedJwt> {
  const { header, claims } = readToken(token)
  const trusted = typeof claims.iss === 'string' ? providers.get(claims.iss) : undefined
  if (trusted === undefined) throw new TokenRejection('issuer')
  const { provider, keys } = trusted
  const { kid, algorithm } = checkHeader(header, provider)
  const { aud } = claims
  if (!(Array.isArray(aud) ? aud : [aud]).includes(provider.audience)) {
    throw new TokenRejection('audience')
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

function identityOf({ kind, issuer, claims }: JwtProvider, values: JsonObject): ProvidedIdentity {
  const subject = checkSubject(claimAt(values, claims.subject))
  const roles = rolesOf(claims.roles === null ? null : claimAt(values, claims.roles))
  const email = claims.email === null ? null : claimAt(values, claims.email)
  if (email === null) return { kind, subject, issuer, roles }
  if (typeof email !== 'string') throw new TokenRejection('email')
  return { kind, subject, issuer, roles, email }
}

/** Returns the claim; null for an absent one too, because issuers use both for a missing value. */
function claimAt(claims: JsonObject, path: ClaimPath): Json {
  let value: Json = claims as { [key: string]: Json }
  for (const key of path) {
    if (!isJsonObject(value)) return null
    value = Object.hasOwn(value, key) ? value[key]! : null
  }
  return value
}

/** Reads a list of strings, or one string separated by spaces, as `scope` is (RFC 8693, 4.2). */
function rolesOf(claim: Json): readonly string[] {
  if (claim === null) return []
  const roles = typeof claim === 'string' ? claim.split(' ').filter((role) => role !== '') : claim
  if (!Array.isArray(roles) || !roles.every((role) => typeof role === 'string')) {
    throw new TokenRejection('roles')
  }
  if (roles.length > ROLES_MAX) throw new TokenRejection('rolesCount')
  return roles
}
