/**
 * Caches results of Queries until a commit overlaps their read sets. Every entry is current at the
 * newest durable sequence, since a commit invalidates entries before its caller gets the reply.
 */
import {
  type CompressedForms,
  type CompressedText,
  type ContentCoding,
  KeptForms,
} from '../../system/compression.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../../system/memory/memory-plan.ts'
import { SeenFilter } from '../../system/seen-filter.ts'
import type { System } from '../../system/system.ts'
import { flatText } from '../../value/memory/flat-text.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import type { ConfigurationSnapshot, ConfigurationSource } from '../calls/function-configuration.ts'
import type { CommitWrites, ReadSet } from '../commits/read-set.ts'
import { ReadSetIndex } from './read-set-index.ts'

export interface CachedResult {
  /** Tagged JSON. */
  readonly resultText: string
  /** True if any document or index was read. */
  readonly hasRead: boolean
  /** True if the result carries a grant. */
  readonly hasGrant: boolean
  /** The configuration whose variables it read; null if it read none. */
  readonly configuration: ConfigurationSnapshot | null
}

/**
 * The cache keys of a call. A result whose run did not read the identity of its caller is shared:
 * everything that decides whether a run reads the identity is in the read set or in the key, so the
 * runs for all callers decide alike.
 */
export interface CacheKeys {
  readonly shared: string
  /** The key for one caller; equal to `shared` for a Function without an identity. */
  readonly perCaller: string
}

/**
 * The share of the bound that an eviction leaves. Evicting one entry at a time would make each
 * iteration skip the deleted entries at the front of the map, which costs more than the eviction.
 */
const RETAINED_SHARE = 7 / 8
/**
 * Share of the bound that a result may take with its key, read set and compressed forms. With the
 * default target the longest response fits: a hundred callers of one that is not cached would have
 * a hundred copies of it in memory.
 */
const ENTRY_SHARE_MAX = 1 / 2
/** Shortest time between two moves of an entry to the end: a move costs as much as a lookup. */
const MOVE_INTERVAL_MILLIS = 1_000

/** Slots of the filter for keys that were requested before. */
const REQUESTED_SLOTS = 65_536

/** A cached result that was found, and where its compressed forms are kept. */
export interface FoundResult extends CachedResult {
  readonly compressed: CompressedForms
}

/** The fields of an entry that the cache chooses. */
interface EntryFields extends CachedResult {
  readonly key: string
  readonly size: number
  readonly expiresAt: number
  readonly movedAt: number
}

/** A result that keeps its own compressed forms, whose bytes count as characters of the cache. */
class Entry implements FoundResult, CompressedForms {
  readonly key: string
  readonly resultText: string
  readonly hasRead: boolean
  readonly hasGrant: boolean
  readonly configuration: ConfigurationSnapshot | null
  /** Monotonic milliseconds; infinite where the Query did not read the clock. */
  readonly expiresAt: number
  /** Monotonic milliseconds when it last moved to the end of the eviction order. */
  movedAt: number
  size: number
  readonly #charge: (entry: Entry, bytes: number) => boolean
  /** Null until a request asks for a form. */
  #forms: KeptForms | null = null

  constructor(fields: EntryFields, charge: (entry: Entry, bytes: number) => boolean) {
    this.key = fields.key
    this.resultText = fields.resultText
    this.hasRead = fields.hasRead
    this.hasGrant = fields.hasGrant
    this.configuration = fields.configuration
    this.expiresAt = fields.expiresAt
    this.movedAt = fields.movedAt
    this.size = fields.size
    this.#charge = charge
  }

  get compressed(): CompressedForms {
    return this
  }

  find(coding: ContentCoding): CompressedText | null | undefined {
    return this.#forms?.find(coding)
  }

  keep(coding: ContentCoding, form: CompressedText | null): void {
    if (this.find(coding) !== undefined) return
    if (form !== null && !this.#charge(this, form.blocks.length)) return
    this.#forms ??= new KeptForms()
    this.#forms.keep(coding, form)
  }
}

export interface CacheStatistics {
  readonly entries: number
  readonly characters: number
  readonly hits: number
  readonly misses: number
  /** Results that were removed because of the bound on characters. */
  readonly evictions: number
}

interface CacheOptions {
  readonly system: System
  /** Monotonic clock by which results of Queries that read the time expire. Default: `system`. */
  readonly resultClock?: Pick<System, 'monotonicMillis'>
  readonly configuration: ConfigurationSource
  readonly memory?: MemoryPlan | undefined
}

export class QueryCache {
  readonly #clock: Pick<System, 'monotonicMillis'>
  readonly #configuration: ConfigurationSource
  /** The entries in eviction order: the least recently used one comes first. */
  readonly #entries = new TransientMap<string, Entry>()
  readonly #readSets: ReadSetIndex<Entry>
  readonly #requested = new SeenFilter(REQUESTED_SLOTS)
  readonly #charactersMax: number
  readonly #entryCharactersMax: number
  #characters = 0
  #hits = 0
  #misses = 0
  #evictions = 0

  constructor(options: CacheOptions) {
    const { system, resultClock = system, configuration, memory = DEFAULT_PLAN } = options
    this.#charactersMax = memory.resultCharacters
    this.#entryCharactersMax = memory.resultCharacters * ENTRY_SHARE_MAX
    this.#clock = resultClock
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

  /** Returns the current result; null if there is none. */
  get({ shared, perCaller }: CacheKeys): FoundResult | null {
    let entry = this.#entries.get(shared)
    if (entry === undefined && perCaller !== shared) entry = this.#entries.get(perCaller)
    const now = this.#clock.monotonicMillis()
    if (entry === undefined || !this.#isValid(entry, now)) {
      this.#misses += 1
      if (entry !== undefined) this.#remove(entry)
      return null
    }
    this.#hits += 1
    // A Map keeps insertion order, so reinsertion moves the entry to the end.
    if (now - entry.movedAt > MOVE_INTERVAL_MILLIS) {
      entry.movedAt = now
      this.#entries.delete(entry.key)
      this.#entries.set(entry.key, entry)
    }
    return entry
  }

  /**
   * Caches a result whose key was requested before: most keys are requested once, and their results
   * would only evict others. `lifetimeMillis` is null for a result that depends on its read set
   * alone.
   */
  put(key: string, result: CachedResult, readSet: ReadSet, lifetimeMillis: number | null): void {
    if (!this.#requested.hasSeen(key)) return
    const previous = this.#entries.get(key)
    if (previous !== undefined) this.#remove(previous)
    const now = this.#clock.monotonicMillis()
    const expiresAt = now + (lifetimeMillis ?? Number.POSITIVE_INFINITY)
    const size = key.length + result.resultText.length + readSet.bytes
    if (size > this.#entryCharactersMax) return
    const resultText = flatText(result.resultText)
    const fields = { ...result, resultText, key, size, expiresAt, movedAt: now }
    const entry = new Entry(fields, this.#chargeForm)
    this.#entries.set(key, entry)
    this.#readSets.add(entry, readSet)
    this.#characters += size
    if (this.#characters > this.#charactersMax) this.#evict()
  }

  /** Returns whether the bytes are counted: those of an entry that was removed are not kept. */
  readonly #chargeForm = (entry: Entry, bytes: number): boolean => {
    const isKept = this.#entries.get(entry.key) === entry
    if (!isKept || entry.size + bytes > this.#entryCharactersMax) return false
    entry.size += bytes
    this.#characters += bytes
    if (this.#characters > this.#charactersMax) this.#evict()
    return true
  }

  #evict(): void {
    for (const oldest of this.#entries.values()) {
      if (this.#characters <= this.#charactersMax * RETAINED_SHARE) break
      this.#evictions += 1
      this.#remove(oldest)
    }
  }

  /** Removes every result whose read set overlaps the commit. */
  invalidate(writes: CommitWrites): void {
    for (const entry of this.#readSets.matches(writes)) this.#remove(entry)
  }

  clear(): void {
    for (const entry of [...this.#entries.values()]) this.#remove(entry)
  }

  #isValid({ configuration, expiresAt }: Entry, now: number): boolean {
    if (configuration !== null && configuration !== this.#configuration.current) return false
    return expiresAt > now
  }

  #remove(entry: Entry): void {
    if (!this.#entries.delete(entry.key)) return
    this.#readSets.remove(entry)
    this.#characters -= entry.size
  }
}
