/**
 * The newest versions of the documents that were read or written last. Every commit passes through
 * the process that reads, so what is here is never behind; an index seek costs 5 us, this 0.1.
 */
import type { StoredDocument } from './store.ts'

/** Characters of IDs and texts, of both generations. */
const CHARACTERS_MAX = 64 * 1024 * 1024

/**
 * What was not used for a whole generation goes with it: to take single entries out of a Map of
 * many, so that the oldest is known, takes a third of a server's time where few documents are hot.
 */
export class NewestVersions {
  #recent = new Map<string, StoredDocument>()
  #earlier = new Map<string, StoredDocument>()
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

  /** A version that is known to be the newest; the object that stands for it from now on. */
  keep(version: StoredDocument): StoredDocument {
    const known = this.#recent.get(version.id) ?? this.#earlier.get(version.id)
    if (known?.sequence === version.sequence) return known
    this.#add(version)
    return version
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
