/**
 * The newest versions of the documents that were read or written last. Every commit passes through
 * the process that reads, so what is here is never behind; an index seek costs 5 us, this 0.1.
 */
import type { StoredDocument } from './store.ts'

/** Characters of IDs and texts. */
const CHARACTERS_MAX = 64 * 1024 * 1024
/** What stays where the bound made some go: walking past those that went costs more than they. */
const KEPT_SHARE = 7 / 8

export class NewestVersions {
  /** Oldest first. */
  readonly #versions = new Map<string, StoredDocument>()
  readonly #charactersMax: number
  #characters = 0

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax
  }

  /** What a snapshot sees; undefined where only the database can tell. */
  find(id: string, snapshot: number): StoredDocument | undefined {
    const version = this.#versions.get(id)
    return version !== undefined && version.sequence <= snapshot ? version : undefined
  }

  /** A version that is known to be the newest; the object that stands for it from now on. */
  keep(version: StoredDocument): StoredDocument {
    const known = this.#versions.get(version.id)
    if (known?.sequence === version.sequence) return known
    this.forget(version.id)
    this.#versions.set(version.id, version)
    this.#characters += sizeOf(version)
    if (this.#characters > this.#charactersMax) this.#makeRoom()
    return version
  }

  #makeRoom(): void {
    for (const [id] of this.#versions) {
      if (this.#characters <= this.#charactersMax * KEPT_SHARE) break
      this.forget(id)
    }
  }

  forget(id: string): void {
    const version = this.#versions.get(id)
    if (version === undefined) return
    this.#versions.delete(id)
    this.#characters -= sizeOf(version)
  }
}

function sizeOf({ id, text }: StoredDocument): number {
  return id.length + text.length
}
