/**
 * Commits that have their place in the order and are not durable yet. A Mutation reads them, so
 * that those which follow one another on a document share a durable transaction instead of each
 * waiting for one; what it makes of them is answered only behind them.
 */
import type { KeyInterval } from '../../documents/keys.ts'
import type { DocumentWrite, StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { type CommitWrites, firstIndex } from './read-set.ts'

interface UnsettledCommit {
  readonly sequence: number
  readonly writes: CommitWrites
  /** By physical index: its keys in order; null until somebody looks at one. */
  sorted: Map<number, readonly string[]> | null
}

interface Version {
  readonly sequence: number
  /** Null for a deletion. */
  readonly document: StoredDocument | null
}

export class PendingCommits {
  /** In order. */
  readonly #commits: UnsettledCommit[] = []
  /** By document ID, oldest first. */
  readonly #versions = new TransientMap<string, Version[]>()
  /** Settles when the next of them are durable, or all are lost. */
  #changed = Promise.withResolvers<void>()
  #isLost = false
  #isStalled = false

  /** Sequences ascend. */
  add(sequence: number, documents: readonly DocumentWrite[], writes: CommitWrites): void {
    this.#commits.push({ sequence, writes, sorted: null })
    for (const { id, createdAtMicros, text } of documents) {
      const document = text === null ? null : { id, createdAtMicros, sequence, text }
      const versions = this.#versions.get(id)
      if (versions === undefined) this.#versions.set(id, [{ sequence, document }])
      else versions.push({ sequence, document })
    }
  }

  /** Whether the store takes too long over the oldest of them. */
  get isStalled(): boolean {
    return this.#isStalled
  }

  /** Until some of them are durable: whoever waits for them is told. */
  markStalled(): void {
    this.#isStalled = true
    this.#tell()
  }

  /** Those up to `sequence` are durable. */
  settle(sequence: number): void {
    this.#isStalled = false
    const open = this.#commits.findIndex((commit) => commit.sequence > sequence)
    for (const { writes } of this.#commits.splice(0, open === -1 ? this.#commits.length : open)) {
      for (const id of writes.documents) {
        const versions = this.#versions.get(id)!
        if (versions.length === 1) this.#versions.delete(id)
        else versions.shift()
      }
    }
    this.#tell()
  }

  /** None of them ever will be: whoever read them must not be answered. */
  lose(): void {
    this.#isLost = true
    this.#tell()
  }

  /** The version that the snapshot sees; undefined where none of them wrote the document. */
  find(id: string, snapshot: number): StoredDocument | null | undefined {
    return this.#versions.get(id)?.findLast(({ sequence }) => sequence <= snapshot)?.document
  }

  /** Whether one that the snapshot sees changed what is in the interval of the index. */
  touch(index: number, { lower, upper }: KeyInterval, snapshot: number): boolean {
    return this.#commits.some((commit) => {
      if (commit.sequence > snapshot) return false
      const keys = sortedKeys(commit, index)
      const first = firstIndex(keys, (key) => key >= lower)
      return first < keys.length && keys[first]! < upper
    })
  }

  /** Whether the snapshot sees what will never be. */
  isLost(snapshot: number): boolean {
    return this.#isLost && this.#holds(snapshot)
  }

  /**
   * Waits until all that the snapshot sees is durable. Raises UNAVAILABLE where it is lost,
   * DEADLINE_EXCEEDED where that takes too long.
   */
  async whenDurable(snapshot: number): Promise<void> {
    while (this.#holds(snapshot)) {
      if (this.#isLost) throw lostFault()
      if (this.#isStalled) throw stalledFault()
      await this.#changed.promise
    }
  }

  #holds(snapshot: number): boolean {
    const [oldest] = this.#commits
    return oldest !== undefined && oldest.sequence <= snapshot
  }

  #tell(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}

/** One commit may hold thousands, and an import asks once for each document. */
function sortedKeys(commit: UnsettledCommit, index: number): readonly string[] {
  commit.sorted ??= new Map()
  let keys = commit.sorted.get(index)
  if (keys === undefined) {
    keys = [...(commit.writes.keys.get(index) ?? [])].sort()
    commit.sorted.set(index, keys)
  }
  return keys
}

/** Of what waits for a commit that the store has not answered; it may become durable yet. */
export function stalledFault(): Fault {
  return new Fault('DEADLINE_EXCEEDED', { detail: 'documents: a commit takes too long' })
}

/** Of what counts on a commit that failed. */
export function lostFault(cause?: unknown): Fault {
  return new Fault('UNAVAILABLE', { cause, detail: 'behind a failed commit' })
}
