/**
 * Results of Queries, each with its read set, served until a commit touches it. An entry that is
 * present holds at the newest durable sequence: commits remove entries before they are answered.
 */
import { SeenFilter } from '../../system/seen-filter.ts'
import type { System } from '../../system/system.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import type { CommitWrites, ReadSet } from '../commits/read-set.ts'
import type { ConfigurationSource, ConfigurationState } from '../invocations/configuration.ts'
import { CACHE_CHARACTERS_MAX } from '../limits.ts'
import { ReadSetIndex } from './read-set-index.ts'

export interface CachedResult {
  /** Tagged JSON. */
  readonly resultText: string
  /** Whether any document or index was read. */
  readonly hasRead: boolean
  /** The one that it read variables of; null where it read none. */
  readonly configuration: ConfigurationState | null
}

/**
 * What a result is kept under. One whose run did not look at the caller is everybody's: whatever
 * decides whether a run looks there was read, or is in the key, so that it is the same for all.
 */
export interface ResultKeys {
  readonly shared: string
  /** Of one caller alone; the same text where all see the same. */
  readonly own: string
}

/** What stays where the bound made some go: walking past those that went costs more than they. */
const KEPT_SHARE = 7 / 8
/** Of an entry that is used all the time: moving it costs as much as finding it. */
const MOVED_MILLIS = 1_000

/** Places for keys that were asked for. */
const ASKED_PLACES = 65_536

interface Entry extends CachedResult {
  readonly key: string
  readonly size: number
  /** Monotonic milliseconds; infinite where the Query did not look at the clock. */
  readonly expiresAt: number
  /** When it was last put behind all others that make room before it. */
  movedAt: number
}

export interface CacheStatistics {
  readonly entries: number
  readonly characters: number
  readonly hits: number
  readonly misses: number
  /** Results that made room for others. */
  readonly evictions: number
}

interface CacheOptions {
  readonly system: System
  readonly configuration: ConfigurationSource
}

export class QueryCache {
  readonly #system: System
  readonly #configuration: ConfigurationSource
  readonly #entries = new TransientMap<string, Entry>()
  readonly #readSets: ReadSetIndex<Entry>
  readonly #asked = new SeenFilter(ASKED_PLACES)
  #characters = 0
  #hits = 0
  #misses = 0
  #evictions = 0

  constructor({ system, configuration }: CacheOptions) {
    this.#system = system
    this.#configuration = configuration
    this.#readSets = new ReadSetIndex(Buffer.from(system.randomBytes(4)).readInt32BE())
  }

  get statistics(): CacheStatistics {
    return {
      entries: this.#entries.size,
      characters: this.#characters,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictions,
    }
  }

  get({ shared, own }: ResultKeys): CachedResult | null {
    let entry = this.#entries.get(shared)
    if (entry === undefined && own !== shared) entry = this.#entries.get(own)
    const now = this.#system.monotonicMillis()
    if (entry === undefined || !this.#holds(entry, now)) {
      this.#misses += 1
      if (entry !== undefined) this.#remove(entry)
      return null
    }
    this.#hits += 1
    // A Map keeps insertion order, so what was not used for long comes first.
    if (now - entry.movedAt > MOVED_MILLIS) {
      entry.movedAt = now
      this.#entries.delete(entry.key)
      this.#entries.set(entry.key, entry)
    }
    return entry
  }

  /**
   * Keeps a result that was asked for before: most of what is asked once is never asked again, and
   * would only push out what is. `lifetimeMillis` is null for a result that only depends on
   * what was read.
   */
  put(key: string, result: CachedResult, readSet: ReadSet, lifetimeMillis: number | null): void {
    if (!this.#asked.hasSeen(key)) return
    const previous = this.#entries.get(key)
    if (previous !== undefined) this.#remove(previous)
    const now = this.#system.monotonicMillis()
    const expiresAt = now + (lifetimeMillis ?? Number.POSITIVE_INFINITY)
    const size = key.length + result.resultText.length + readSet.bytes
    if (size > CACHE_CHARACTERS_MAX / 8) return
    const resultText = flatText(result.resultText)
    const entry: Entry = { ...result, resultText, key, size, expiresAt, movedAt: now }
    this.#entries.set(key, entry)
    this.#readSets.add(entry, readSet)
    this.#characters += size
    if (this.#characters > CACHE_CHARACTERS_MAX) this.#makeRoom()
  }

  #makeRoom(): void {
    for (const oldest of this.#entries.values()) {
      if (this.#characters <= CACHE_CHARACTERS_MAX * KEPT_SHARE) break
      this.#evictions += 1
      this.#remove(oldest)
    }
  }

  /** Drops every result that a commit changed. */
  invalidate(writes: CommitWrites): void {
    for (const entry of this.#readSets.matches(writes)) this.#remove(entry)
  }

  clear(): void {
    for (const entry of [...this.#entries.values()]) this.#remove(entry)
  }

  #holds({ configuration, expiresAt }: Entry, now: number): boolean {
    if (configuration !== null && configuration !== this.#configuration.current) return false
    return expiresAt > now
  }

  #remove(entry: Entry): void {
    if (!this.#entries.delete(entry.key)) return
    this.#readSets.remove(entry)
    this.#characters -= entry.size
  }
}
