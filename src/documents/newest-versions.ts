/**
 * Cache of the newest versions of documents that were written last or read more than once. Every
 * commit passes through this process, so the cache is never stale. A hit costs 0.1 us, an index
 * seek 5 us.
 */
import { DEFAULT_PLAN } from '../system/memory/memory-plan.ts'
import { SeenFilter } from '../system/seen-filter.ts'
import type { StoredDocument } from './store.ts'

/** Slots of the filter of first reads: about as many as there are short documents in the cache. */
const FIRST_READ_SLOTS = 262_144

/**
 * The entry of a document. It stays when its version is replaced, so that the Map is not written:
 * each young-generation collection scans a Map that was written, which took milliseconds.
 */
interface CacheEntry {
  version: StoredDocument
  /** Characters of ID and text. Reading them again at the replacement would miss the CPU caches. */
  characters: number
}

/**
 * A cache of two generations. Entries that were not used for a whole generation are dropped with
 * it: to remove single entries from a large Map, as an LRU list does, took a third of the server's
 * time where few documents are hot.
 */
export class NewestVersions {
  #recent = new Map<string, CacheEntry>()
  #earlier = new Map<string, CacheEntry>()
  readonly #firstReads = new SeenFilter(FIRST_READ_SLOTS)
  readonly #charactersMax: number
  #recentCharacters = 0

  /** `charactersMax` bounds the IDs and texts in both generations. */
  constructor(charactersMax = DEFAULT_PLAN.documentCharacters) {
    this.#charactersMax = charactersMax
  }

  /** The version that a snapshot sees; undefined where the database has to be read. */
  find(id: string, snapshot: number): StoredDocument | undefined {
    const entry = this.#recent.get(id) ?? this.#promote(id)
    return entry !== undefined && entry.version.sequence <= snapshot ? entry.version : undefined
  }

  /**
   * Caches a version that was read and is known to be the newest, from its second read on. Returns
   * the cached object of that version. Most documents that are read once are not read again: they
   * would push out others, and objects that live that long cost the garbage collector most.
   */
  keep(version: StoredDocument): StoredDocument {
    const { id, sequence } = version
    const known = this.#recent.get(id) ?? this.#earlier.get(id)
    if (known?.version.sequence === sequence) return known.version
    if (known !== undefined || this.#firstReads.hasSeen(id, sequence)) this.put(version)
    return version
  }

  /** Caches a version that was written. */
  put(version: StoredDocument): void {
    const { id } = version
    const entry = this.#recent.get(id)
    if (entry === undefined) {
      this.#add(id, { version, characters: sizeOf(version) })
      return
    }
    this.#recentCharacters -= entry.characters
    entry.version = version
    entry.characters = sizeOf(version)
    this.#count(entry)
  }

  forget(id: string): void {
    const entry = this.#recent.get(id)
    if (entry !== undefined) this.#recentCharacters -= entry.characters
    this.#recent.delete(id)
    this.#earlier.delete(id)
  }

  /** Drops all versions. They are cached again when they are read. */
  clear(): void {
    this.#recent = new Map()
    this.#earlier = new Map()
    this.#recentCharacters = 0
  }

  #promote(id: string): CacheEntry | undefined {
    const entry = this.#earlier.get(id)
    if (entry !== undefined) this.#add(id, entry)
    return entry
  }

  #add(id: string, entry: CacheEntry): void {
    this.#recent.set(id, entry)
    this.#count(entry)
  }

  #count({ characters }: CacheEntry): void {
    this.#recentCharacters += characters
    if (this.#recentCharacters <= this.#charactersMax / 2) return
    this.#earlier = this.#recent
    this.#recent = new Map()
    this.#recentCharacters = 0
  }
}

function sizeOf({ id, text }: StoredDocument): number {
  return id.length + text.length
}
