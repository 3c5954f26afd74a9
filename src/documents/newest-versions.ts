/**
 * The newest versions of the documents that were written last, or read more than once. Every commit
 * passes through the process that reads, so what is here is never behind; an index seek costs 5 us,
 * this 0.1.
 */
import { RecentTexts } from '../system/recent-texts.ts'
import type { StoredDocument } from './store.ts'

/** Characters of IDs and texts, of both generations. */
const CHARACTERS_MAX = 64 * 1024 * 1024
/** Of what was read once: about as many as the generations hold of short documents. */
const READ_PLACES = 262_144

/**
 * What was not used for a whole generation goes with it: to take single entries out of a Map of
 * many, so that the oldest is known, takes a third of a server's time where few documents are hot.
 */
export class NewestVersions {
  #recent = new Map<string, StoredDocument>()
  #earlier = new Map<string, StoredDocument>()
  readonly #read = new RecentTexts(READ_PLACES)
  readonly #charactersMax: number
  #recentCharacters = 0

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** What a snapshot sees; undefined where only the database can tell. */
  find(id: string, snapshot: number): StoredDocument | undefined {
    const version = this.#recent.get(id) ?? this.#used(id)
    return version !== undefined && version.sequence <= snapshot ? version : undefined
  }

  /**
   * A version that was read and is known to be the newest; the object that stands for it. What is
   * read once mostly never is again: it would push out what is, and what lives as long as that
   * costs the collector most.
   */
  keep(version: StoredDocument): StoredDocument {
    const known = this.#recent.get(version.id) ?? this.#earlier.get(version.id)
    if (known?.sequence === version.sequence) return known
    if (known !== undefined || this.#read.sawBefore(version.id, version.sequence))
      this.#add(version)
    return version
  }

  /** A version that was written. */
  put(version: StoredDocument): void {
    this.#add(version)
  }

  forget(id: string): void {
    const version = this.#recent.get(id)
    if (version !== undefined) this.#recentCharacters -= sizeOf(version)
    this.#recent.delete(id)
    this.#earlier.delete(id)
  }

  #used(id: string): StoredDocument | undefined {
    const version = this.#earlier.get(id)
    if (version !== undefined) this.#add(version)
    return version
  }

  #add(version: StoredDocument): void {
    const replaced = this.#recent.get(version.id)
    if (replaced !== undefined) this.#recentCharacters -= sizeOf(replaced)
    this.#recent.set(version.id, version)
    this.#recentCharacters += sizeOf(version)
    if (this.#recentCharacters <= this.#charactersMax / 2) return
    this.#earlier = this.#recent
    this.#recent = new Map()
    this.#recentCharacters = 0
  }
}

function sizeOf({ id, text }: StoredDocument): number {
  return id.length + text.length
}
