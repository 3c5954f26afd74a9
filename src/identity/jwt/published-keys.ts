/**
 * Cache of the keys of a publisher: loaded on first use, fresh for ten minutes, and used for a day
 * while the publisher cannot be reached. A token with an unknown key causes a reload, at a bounded
 * rate. With a store, the newest set outlives the process.
 */
import type { TableCode } from '../../errors/codes.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { FetchFailure, GuardedFetch, type Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { readKeySet, type VerificationKey } from './key-sets.ts'

/** Bounds of the verifier (contract/wire.md, Bounds of the OIDC verifier). */
const DOCUMENT_BYTES_MAX = 256 * 1024
const DOCUMENT_TIMEOUT_MS = 5_000
/** Time for which a withdrawn key is still accepted. */
const KEYS_FRESH_MS = 600_000
/** Time for which tokens are still verified while the publisher is down. */
const KEYS_KEPT_MS = 86_400_000
/** Pause between reloads for unknown keys: any caller can send tokens with invented key names. */
const UNKNOWN_KEY_PAUSE_MS = 30_000
/** Pause after a failure, so that not every token retries a publisher that is down. */
const FAILURE_PAUSE_MS = 5_000

interface KeySet {
  readonly keys: readonly VerificationKey[]
  /** Fetch time by both clocks: the wall clock can be set, the monotonic one stops in sleep. */
  readonly wallMillis: number
  readonly monotonicMillis: number
  /** True if an earlier process fetched it. Such a set may be stale, so a reload runs anyway. */
  readonly restored: boolean
}

/** A key set as it was published. */
export interface StoredKeySet {
  readonly document: Uint8Array
  /** Unix milliseconds. */
  readonly fetchedAtMillis: number
}

/** Persists the newest key set of one publisher. */
export interface KeySetStore {
  read(): StoredKeySet | null
  write(keySet: StoredKeySet): void
}

export interface PublishedKeysOptions {
  /** Name of the publisher in the log. */
  readonly publisher: string
  readonly algorithms: readonly SignatureAlgorithm[]
  /** Exact origins that documents may have. */
  readonly allowedOrigins: readonly string[]
  readonly allowLoopbackHttp: boolean
  /** Returns the URL of the key set. `read` fetches the documents that lead to it. */
  readonly locate: (read: (url: string) => Promise<Uint8Array>) => Promise<string>
  /** Code where no set of the last day is known, and for an unknown key after a failed load. */
  readonly unavailable: TableCode
  readonly system: Pick<System, 'nowMillis' | 'monotonicMillis'>
  readonly log: Logger
  /** Null keeps the keys in memory only. */
  readonly store: KeySetStore | null
  /** The network of the fetches. Tests replace it. */
  readonly network?: Network | undefined
}

export class PublishedKeys {
  readonly #options: PublishedKeysOptions
  readonly #fetch: GuardedFetch
  #set: KeySet | null = null
  #loading: Promise<void> | null = null
  #failedAtMillis = Number.NEGATIVE_INFINITY
  #revision = 0

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

  /** Number of loads. A key that was trusted before a load may have been removed by it. */
  get revision(): number {
    return this.#revision
  }

  /**
   * Loads the set that an earlier process stored. It is used until the publisher answers, for at
   * most a day after its fetch, and does not delay the next load.
   */
  async restore(): Promise<void> {
    const { algorithms, log, publisher, store, system } = this.#options
    try {
      const stored = store?.read() ?? null
      if (stored === null) return
      const wallMillis = stored.fetchedAtMillis
      const ageMillis = system.nowMillis() - wallMillis
      // The clock was set back, so the age of the set is unknown.
      if (ageMillis < 0) return
      const keys = await readKeySet(stored.document, algorithms)
      const monotonicMillis = system.monotonicMillis() - ageMillis
      this.#set = { keys, wallMillis, monotonicMillis, restored: true }
    } catch (error) {
      log.warn('keys.not_restored', { publisher, detail: reasonOf(error) })
    }
  }

  /**
   * Finds the key by its name; without a name, the only key of the algorithm. Null if there is no
   * such key. Throws `unavailable` where no set is known, and for an unknown key while loads fail.
   */
  async find(kid: string | null, algorithm: SignatureAlgorithm): Promise<VerificationKey | null> {
    const known = await this.#current()
    const found = selectKey(known.keys, kid, algorithm)
    if (found !== null) return found
    if (this.#loading === null) {
      // The set was loaded recently, perhaps by this call.
      if (this.#isNewerThan(UNKNOWN_KEY_PAUSE_MS)) return null
      if (this.#sinceFailure() < FAILURE_PAUSE_MS) throw this.#unavailable()
    }
    await this.#load()
    if (this.#sinceFailure() < Number.POSITIVE_INFINITY) throw this.#unavailable()
    return selectKey(this.#set?.keys ?? [], kid, algorithm)
  }

  async #current(): Promise<KeySet> {
    if (this.#set !== null && this.#isNewerThan(KEYS_FRESH_MS)) return this.#set
    const sinceFailure = this.#sinceFailure()
    if (sinceFailure >= FAILURE_PAUSE_MS) {
      const loading = this.#load()
      // While loads fail, the cached keys are used and the load runs in the background.
      if (sinceFailure === Number.POSITIVE_INFINITY || !this.#isKept()) await loading
    }
    if (this.#set !== null && this.#isKept()) return this.#set
    throw this.#unavailable()
  }

  /** Returns whether this process fetched the set within that time. */
  #isNewerThan(millis: number): boolean {
    return this.#set?.restored === false && this.#age() < millis
  }

  #isKept(): boolean {
    return this.#age() < KEYS_KEPT_MS
  }

  #age(): number {
    if (this.#set === null) return Number.POSITIVE_INFINITY
    const { system } = this.#options
    const { wallMillis, monotonicMillis } = this.#set
    return Math.max(system.nowMillis() - wallMillis, system.monotonicMillis() - monotonicMillis)
  }

  /** Milliseconds since the last failed load; infinite after a successful one. */
  #sinceFailure(): number {
    return this.#options.system.monotonicMillis() - this.#failedAtMillis
  }

  #unavailable(): Fault {
    const { publisher, unavailable } = this.#options
    return new Fault(unavailable, { detail: `no current keys of ${publisher}` })
  }

  /** Loads the keys; concurrent callers share one load. A failure keeps the last set. */
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
      const document = await read(await locate(read))
      const keys = await readKeySet(document, algorithms)
      if (keys.length === 0) throw new ValidationError('a key of a configured algorithm', '$.keys')
      const wallMillis = system.nowMillis()
      const monotonicMillis = system.monotonicMillis()
      this.#set = { keys, wallMillis, monotonicMillis, restored: false }
      this.#revision += 1
      this.#failedAtMillis = Number.NEGATIVE_INFINITY
      this.#store({ document, fetchedAtMillis: wallMillis })
    } catch (error) {
      this.#failedAtMillis = system.monotonicMillis()
      log.warn('keys.unavailable', { publisher, detail: reasonOf(error) })
    }
  }

  /** Stores the set. A failure is logged only, since this process has the keys in memory. */
  #store(keySet: StoredKeySet): void {
    const { log, publisher, store } = this.#options
    try {
      store?.write(keySet)
    } catch (error) {
      log.warn('keys.not_stored', { publisher, error })
    }
  }

  async #document(url: string): Promise<Uint8Array> {
    const { status, body } = await this.#fetch.get(url)
    if (status !== 200) throw new ValidationError('status 200')
    return body
  }
}

/** Selects a key by its name; without a name, the only key of the algorithm. */
export function selectKey(
  keys: readonly VerificationKey[],
  kid: string | null,
  algorithm: SignatureAlgorithm,
): VerificationKey | null {
  const candidates = keys.filter((key) => key.algorithm === algorithm)
  if (kid !== null) return candidates.find((key) => key.kid === kid) ?? null
  return candidates.length === 1 ? candidates[0]! : null
}

function reasonOf(error: unknown): string {
  if (error instanceof FetchFailure) return error.message
  if (error instanceof ValidationError) return error.message
  return isFault(error) ? error.code : 'unexpected failure'
}
