/**
 * The newest versions of the documents that were written last, or read more than once. Every commit
 * passes through the process that reads, so what is here is never behind; an index seek costs 5 us,
 * this 0.1.
 */
import { SeenFilter } from '../system/seen-filter.ts'
import type { StoredDocument } from './store.ts'

/** Characters of IDs and texts, of both generations. */
const CHARACTERS_MAX = 64 * 1024 * 1024
/** Of what was read once: about as many as the generations hold of short documents. */
const READ_PLACES = 262_144

/**
 * Where the newest version of a document is. It stays when the version is replaced: a Map that is
 * written to is looked through by each collection of the young, which took milliseconds.
 */
interface Place {
  version: StoredDocument
  /** Of its ID and text, which no processor has at hand any more when it is replaced. */
  characters: number
}

/**
 * What was not used for a whole generation goes with it: to take single entries out of a Map of
 * many, so that the oldest is known, takes a third of a server's time where few documents are hot.
 */
export class NewestVersions {
  #recent = new Map<string, Place>()
  #earlier = new Map<string, Place>()
  readonly #read = new SeenFilter(READ_PLACES)
  readonly #charactersMax: number
  #recentCharacters = 0

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** What a snapshot sees; undefined where only the database can tell. */
  find(id: string, snapshot: number): StoredDocument | undefined {
    const place = this.#recent.get(id) ?? this.#used(id)
    return place !== undefined && place.version.sequence <= snapshot ? place.version : undefined
  }

  /**
   * A version that was read and is known to be the newest; the object that stands for it. What is
   * read once mostly never is again: it would push out what is, and what lives as long as that
   * costs the collector most.
   */
  keep(version: StoredDocument): StoredDocument {
    const { id, sequence } = version
    const known = this.#recent.get(id) ?? this.#earlier.get(id)
    if (known?.version.sequence === sequence) return known.version
    if (known !== undefined || this.#read.hasSeen(id, sequence)) this.put(version)
    return version
  }

  /** A version that was written. */
  put(version: StoredDocument): void {
    const { id } = version
    const place = this.#recent.get(id)
    if (place === undefined) {
      this.#add(id, { version, characters: sizeOf(version) })
      return
    }
    this.#recentCharacters -= place.characters
    place.version = version
    place.characters = sizeOf(version)
    this.#count(place)
  }

  forget(id: string): void {
    const place = this.#recent.get(id)
    if (place !== undefined) this.#recentCharacters -= place.characters
    this.#recent.delete(id)
    this.#earlier.delete(id)
  }

  #used(id: string): Place | undefined {
    const place = this.#earlier.get(id)
    if (place !== undefined) this.#add(id, place)
    return place
  }

  #add(id: string, place: Place): void {
    this.#recent.set(id, place)
    this.#count(place)
  }

  #count({ characters }: Place): void {
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
