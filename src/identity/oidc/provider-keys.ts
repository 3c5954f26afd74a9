/**
 * The keys of the provider over time: discovered, reused for ten minutes, kept for a day where the
 * provider cannot be reached, and asked for again when a token names an unknown one - but not more
 * often than a stranger's tokens should make us.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { FetchFailure, GuardedFetch, type Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import { Malformed } from '../../value/malformed.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { readKeySet, readObject, type VerificationKey } from './key-sets.ts'
import {
  DOCUMENT_BYTES_MAX,
  DOCUMENT_TIMEOUT_MS,
  KEYS_FRESH_MS,
  KEYS_KEPT_MS,
  type OidcProvider,
  UNKNOWN_KEY_PAUSE_MS,
} from './provider.ts'

/** After a failure, so that a provider that is down is not asked by every login. */
const FAILURE_PAUSE_MS = 5_000
const JSON_LIMITS = { depthMax: 16, entriesMax: 1_000 }

interface KeySet {
  readonly keys: readonly VerificationKey[]
  readonly atMillis: number
}

export interface ProviderKeysOptions {
  readonly provider: OidcProvider
  readonly system: System
  readonly log: Logger
  /** For tests. */
  readonly network?: Network
}

export class ProviderKeys {
  readonly #provider: OidcProvider
  readonly #system: System
  readonly #log: Logger
  readonly #fetch: GuardedFetch
  #set: KeySet | null = null
  #loading: Promise<void> | null = null
  #failedAtMillis = Number.NEGATIVE_INFINITY
  #unknownAtMillis = Number.NEGATIVE_INFINITY

  constructor({ provider, system, log, network }: ProviderKeysOptions) {
    this.#provider = provider
    this.#system = system
    this.#log = log
    this.#fetch = new GuardedFetch({
      allowedOrigins: provider.allowedOrigins,
      allowLoopbackHttp: provider.allowLoopbackHttp,
      bodyBytesMax: DOCUMENT_BYTES_MAX,
      timeoutMs: DOCUMENT_TIMEOUT_MS,
      concurrencyMax: 1,
      ...(network !== undefined && { network }),
    })
  }

  /**
   * The key of that name; without a name, the only one there is. null where there is none. Throws
   * PLATFORM_UNAVAILABLE where no key set of the last day is known.
   */
  async find(kid: string | null): Promise<VerificationKey | null> {
    const known = await this.#current()
    const found = select(known.keys, kid)
    if (found !== null) return found
    const now = this.#system.monotonicMillis()
    // A set that was loaded for this very call has nothing newer behind it.
    const recent = Math.max(known.atMillis, this.#unknownAtMillis)
    if (this.#loading === null) {
      if (now - recent < UNKNOWN_KEY_PAUSE_MS) return null
      this.#unknownAtMillis = now
    }
    await this.#load()
    return select(this.#set?.keys ?? [], kid)
  }

  async #current(): Promise<KeySet> {
    const age = this.#age()
    if (this.#set !== null && age < KEYS_FRESH_MS) return this.#set
    if (this.#system.monotonicMillis() - this.#failedAtMillis >= FAILURE_PAUSE_MS) {
      await this.#load()
    }
    if (this.#set !== null && this.#age() < KEYS_KEPT_MS) return this.#set
    throw new Fault('PLATFORM_UNAVAILABLE', { detail: 'no keys of the identity provider' })
  }

  #age(): number {
    return this.#system.monotonicMillis() - (this.#set?.atMillis ?? Number.NEGATIVE_INFINITY)
  }

  /** Never throws: a failure leaves the last known good set in place. Callers share one load. */
  #load(): Promise<void> {
    this.#loading ??= this.#reload().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #reload(): Promise<void> {
    try {
      const jwksUri = readDiscovery(await this.#document(this.#provider.discoveryUrl), {
        issuer: this.#provider.issuer,
      })
      const keys = await readKeySet(await this.#document(jwksUri), this.#provider.algorithm)
      if (keys.length === 0) throw new Malformed('a key of the configured algorithm', '$.keys')
      this.#set = { keys, atMillis: this.#system.monotonicMillis() }
      this.#failedAtMillis = Number.NEGATIVE_INFINITY
    } catch (error) {
      this.#failedAtMillis = this.#system.monotonicMillis()
      this.#log.warn('oidc.keys_unavailable', { detail: reasonOf(error) })
    }
  }

  async #document(url: string): Promise<Uint8Array> {
    const { status, body } = await this.#fetch.get(url)
    if (status !== 200) throw new Malformed('status 200')
    return body
  }
}

/** Answers `jwks_uri`. The issuer is compared exactly (OpenID Connect Discovery 1.0, 4.3). */
function readDiscovery(document: Uint8Array, { issuer }: { readonly issuer: string }): string {
  const metadata = readObject(parseStrictJson(document, JSON_LIMITS))
  if (metadata.issuer !== issuer) throw new Malformed('the configured issuer', '$.issuer')
  if (typeof metadata.jwks_uri !== 'string') throw new Malformed('a URL', '$.jwks_uri')
  return metadata.jwks_uri
}

function select(keys: readonly VerificationKey[], kid: string | null): VerificationKey | null {
  if (kid !== null) return keys.find((key) => key.kid === kid) ?? null
  return keys.length === 1 ? keys[0]! : null
}

function reasonOf(error: unknown): string {
  if (error instanceof FetchFailure) return error.message
  if (error instanceof Malformed) return error.message
  return isFault(error) ? error.code : 'unexpected failure'
}
