/**
 * The keys of a publisher over time: loaded when first asked for, reused for ten minutes, kept for
 * a day where the publisher cannot be reached, and asked for again when a token names an unknown
 * one - but not more often than a stranger's tokens should make us.
 */
import type { TableCode } from '../../errors/codes.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { FetchFailure, GuardedFetch, type Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { Malformed } from '../../value/malformed.ts'
import { readKeySet, type VerificationKey } from './key-sets.ts'

/** OIDC verifier bounds (wire decisions, section 2). */
const DOCUMENT_BYTES_MAX = 256 * 1024
const DOCUMENT_TIMEOUT_MS = 5_000
const KEYS_FRESH_MS = 600_000
const KEYS_KEPT_MS = 86_400_000
const UNKNOWN_KEY_PAUSE_MS = 30_000
/** After a failure, so that a publisher that is down is not asked by every token. */
const FAILURE_PAUSE_MS = 5_000

interface KeySet {
  readonly keys: readonly VerificationKey[]
  readonly atMillis: number
}

export interface PublishedKeysOptions {
  /** Whose keys, in the log. */
  readonly publisher: string
  readonly algorithms: readonly SignatureAlgorithm[]
  /** Exact origins of every document. */
  readonly allowedOrigins: readonly string[]
  readonly allowLoopbackHttp: boolean
  /** Answers the URL of the key set; `read` gives it what stands in the way there. */
  readonly locate: (read: (url: string) => Promise<Uint8Array>) => Promise<string>
  /** Thrown where no key set of the last day is known, and for an unknown key after a failure. */
  readonly unavailable: TableCode
  readonly system: Pick<System, 'monotonicMillis'>
  readonly log: Logger
  /** For tests. */
  readonly network?: Network | undefined
}

export class PublishedKeys {
  readonly #options: PublishedKeysOptions
  readonly #fetch: GuardedFetch
  #set: KeySet | null = null
  #loading: Promise<void> | null = null
  #failedAtMillis = Number.NEGATIVE_INFINITY

  constructor(options: PublishedKeysOptions) {
    const { allowedOrigins, allowLoopbackHttp, network } = options
    this.#options = options
    this.#fetch = new GuardedFetch({
      allowedOrigins,
      allowLoopbackHttp,
      bodyBytesMax: DOCUMENT_BYTES_MAX,
      timeoutMs: DOCUMENT_TIMEOUT_MS,
      concurrencyMax: 1,
      ...(network !== undefined && { network }),
    })
  }

  /**
   * The key of that name; without a name, the only one of the algorithm. null where there is none.
   * Throws `unavailable`: of an unknown one too while the publisher cannot say whether it is new.
   */
  async find(kid: string | null, algorithm: SignatureAlgorithm): Promise<VerificationKey | null> {
    const known = await this.#current()
    const found = selectKey(known.keys, kid, algorithm)
    if (found !== null) return found
    if (this.#loading === null) {
      // A set that was loaded for this very call has nothing newer behind it.
      if (this.#age() < UNKNOWN_KEY_PAUSE_MS) return null
      if (this.#sinceFailure() < FAILURE_PAUSE_MS) throw this.#unavailable()
    }
    await this.#load()
    if (this.#sinceFailure() < Number.POSITIVE_INFINITY) throw this.#unavailable()
    return selectKey(this.#set?.keys ?? [], kid, algorithm)
  }

  async #current(): Promise<KeySet> {
    const age = this.#age()
    if (this.#set !== null && age < KEYS_FRESH_MS) return this.#set
    const sinceFailure = this.#sinceFailure()
    if (sinceFailure >= FAILURE_PAUSE_MS) {
      const loading = this.#load()
      // Whoever did not answer last time is asked while the kept keys go on serving.
      if (sinceFailure === Number.POSITIVE_INFINITY || age >= KEYS_KEPT_MS) await loading
    }
    if (this.#set !== null && this.#age() < KEYS_KEPT_MS) return this.#set
    throw this.#unavailable()
  }

  #age(): number {
    const atMillis = this.#set?.atMillis ?? Number.NEGATIVE_INFINITY
    return this.#options.system.monotonicMillis() - atMillis
  }

  /** Infinite where the newest load succeeded. */
  #sinceFailure(): number {
    return this.#options.system.monotonicMillis() - this.#failedAtMillis
  }

  #unavailable(): Fault {
    const { publisher, unavailable } = this.#options
    return new Fault(unavailable, { detail: `no current keys of ${publisher}` })
  }

  /** Never throws: a failure leaves the last known good set in place. Callers share one load. */
  #load(): Promise<void> {
    this.#loading ??= this.#reload().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #reload(): Promise<void> {
    const { algorithms, locate, log, publisher, system } = this.#options
    try {
      const read = (url: string) => this.#document(url)
      const keys = await readKeySet(await read(await locate(read)), algorithms)
      if (keys.length === 0) throw new Malformed('a key of a configured algorithm', '$.keys')
      this.#set = { keys, atMillis: system.monotonicMillis() }
      this.#failedAtMillis = Number.NEGATIVE_INFINITY
    } catch (error) {
      this.#failedAtMillis = system.monotonicMillis()
      log.warn('keys.unavailable', { publisher, detail: reasonOf(error) })
    }
  }

  async #document(url: string): Promise<Uint8Array> {
    const { status, body } = await this.#fetch.get(url)
    if (status !== 200) throw new Malformed('status 200')
    return body
  }
}

/** By its name; without a name, the only key of the algorithm. */
export function selectKey(
  keys: readonly VerificationKey[],
  kid: string | null,
  algorithm: SignatureAlgorithm,
): VerificationKey | null {
  const able = keys.filter((key) => key.algorithm === algorithm)
  if (kid !== null) return able.find((key) => key.kid === kid) ?? null
  return able.length === 1 ? able[0]! : null
}

function reasonOf(error: unknown): string {
  if (error instanceof FetchFailure) return error.message
  if (error instanceof Malformed) return error.message
  return isFault(error) ? error.code : 'unexpected failure'
}
