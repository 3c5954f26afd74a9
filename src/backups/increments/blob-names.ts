/**
 * The names of blobs that increments are about to name. Retention removes blobs that no segment
 * names, and must not remove one that the target had when an increment looked for it.
 */

export class BlobNames {
  readonly #used = new Set<string>()
  readonly #removing = new Map<string, Promise<void>>()
  /** Names that segments have since `hold`; null without one. */
  #confirmed: Set<string> | null = null

  /** Keeps a blob from being removed. Resolves when a removal that had begun has ended. */
  async use(name: string): Promise<void> {
    this.#used.add(name)
    this.#confirmed?.delete(name)
    await this.#removing.get(name)?.catch(() => undefined)
  }

  /** Notes that a segment has the names, or that none will have them. */
  confirm(names: Iterable<string>): void {
    for (const name of names) {
      if (this.#confirmed === null) this.#used.delete(name)
      else this.#confirmed.add(name)
    }
  }

  /** Begins a removal: segments that are written from now on may not be known to it. */
  hold(): void {
    this.#confirmed = new Set()
  }

  release(): void {
    for (const name of this.#confirmed ?? []) this.#used.delete(name)
    this.#confirmed = null
  }

  /** Removes a blob unless it is used. */
  async remove(name: string, remove: () => Promise<void>): Promise<void> {
    if (this.#used.has(name)) return
    const removing = remove()
    this.#removing.set(name, removing)
    try {
      await removing
    } finally {
      this.#removing.delete(name)
    }
  }
}
