/**
 * The keys of a publisher over time: loaded when first asked for, reused for ten minutes, kept for
 * a day where the publisher cannot be reached, and asked for again when a token names an unknown
 * one - but not more often than a stranger's tokens should make us. Where there is a store, the
 * newest set outlives the process.
 */
import type { TableCode } from '../../errors/codes.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { FetchFailure, GuardedFetch, type Network } from '../../system/guarded-fetch.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SignatureAlgorithm } from '../../value/jwt-providers.ts'
import { ValidationError } from '../../value/validation-error.ts'
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
  /** When it was fetched, by both clocks: the wall clock may be set, the other stops in sleep. */
  readonly wallMillis: number
  readonly monotonicMillis: number
  /** Whether an earlier process fetched it: it may be out of date, so it only stands in. */
  readonly restored: boolean
}

/** A key set as it was published. */
export interface StoredKeySet {
  readonly document: Uint8Array
  /** Unix milliseconds. */
  readonly fetchedAtMillis: number
}

/** Keeps the newest key set of one publisher beyond the end of the process. */
export interface KeySetStore {
  read(): StoredKeySet | null
  write(keySet: StoredKeySet): void
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
  readonly system: Pick<System, 'nowMillis' | 'monotonicMillis'>
  readonly log: Logger
  /** Null keeps the keys in memory alone. */
  readonly store: KeySetStore | null
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
   * Takes the set that an earlier process fetched, where one is stored. It stands in until the
   * publisher answers, for the rest of its day, and never keeps the publisher from being asked.
   */
  async restore(): Promise<void> {
    const { algorithms, log, publisher, store, system } = this.#options
    try {
      const stored = store?.read() ?? null
      if (stored === null) return
      const wallMillis = stored.fetchedAtMillis
      const ageMillis = system.nowMillis() - wallMillis
      // A set from the future says nothing of its age: the clock was set back.
      if (ageMillis < 0) return
      const keys = await readKeySet(stored.document, algorithms)
      const monotonicMillis = system.monotonicMillis() - ageMillis
      this.#set = { keys, wallMillis, monotonicMillis, restored: true }
    } catch (error) {
      log.warn('keys.not_restored', { publisher, detail: reasonOf(error) })
    }
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
      // A publisher that did not answer last time is asked while the kept keys go on serving.
      if (sinceFailure === Number.POSITIVE_INFINITY || !this.#isKept()) await loading
    }
    if (this.#set !== null && this.#isKept()) return this.#set
    throw this.#unavailable()
  }

  /** Whether this process fetched the set within that time. */
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
      const document = await read(await locate(read))
      const keys = await readKeySet(document, algorithms)
      if (keys.length === 0) throw new ValidationError('a key of a configured algorithm', '$.keys')
      const wallMillis = system.nowMillis()
      const monotonicMillis = system.monotonicMillis()
      this.#set = { keys, wallMillis, monotonicMillis, restored: false }
      this.#failedAtMillis = Number.NEGATIVE_INFINITY
      this.#store({ document, fetchedAtMillis: wallMillis })
    } catch (error) {
      this.#failedAtMillis = system.monotonicMillis()
      log.warn('keys.unavailable', { publisher, detail: reasonOf(error) })
    }
  }

  /** The keys are good for this process, whatever becomes of them on the disk. */
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
  if (error instanceof ValidationError) return error.message
  return isFault(error) ? error.code : 'unexpected failure'
}
