/**
 * Pending commits: they have a sequence and are not durable yet. Mutations read them, so that
 * successive Mutations of one document share a durable transaction instead of each waiting for its
 * own. The caller of a Mutation that read one gets its reply only after that commit is durable.
 */
import { idLength } from '../../documents/index-rows.ts'
import type { KeyInterval } from '../../documents/keys.ts'
import type { DocumentWrite, PhysicalIndex, StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { PENDING_MERGED_MAX, type PendingRange, pendingRange } from './pending-ranges.ts'
import { type CommitWrites, firstIndex } from './read-set.ts'

interface PendingCommit {
  readonly sequence: number
  readonly writes: CommitWrites
  /** The sorted keys by physical index; null until the first range read needs them. */
  sorted: Map<number, readonly string[]> | null
}

interface Version {
  readonly sequence: number
  /** Null for a deletion. */
  readonly document: StoredDocument | null
}

export class PendingCommits {
  /** The commits, in ascending order of their sequences. */
  readonly #commits: PendingCommit[] = []
  /** The pending versions by document ID, oldest first. */
  readonly #versions = new TransientMap<string, Version[]>()
  /** Resolves when the oldest commits are durable, the batch stalls, or all are rolled back. */
  #changed = Promise.withResolvers<void>()
  #isRolledBack = false
  #isStalled = false

  /** Adds a commit. Sequences ascend. */
  add(sequence: number, documents: readonly DocumentWrite[], writes: CommitWrites): void {
    this.#commits.push({ sequence, writes, sorted: null })
    for (const { id, createdAtMicros, text } of documents) {
      const document = text === null ? null : { id, createdAtMicros, sequence, text }
      const versions = this.#versions.get(id)
      if (versions === undefined) this.#versions.set(id, [{ sequence, document }])
      else versions.push({ sequence, document })
    }
  }

  /** Returns whether the oldest commit takes too long, or its outcome cannot be determined yet. */
  get isStalled(): boolean {
    return this.#isStalled
  }

  /** Fails all waits with UNAVAILABLE until a batch is durable again. */
  markStalled(): void {
    this.#isStalled = true
    this.#notify()
  }

  /** Removes the commits up to `sequence`, which are durable. */
  markDurable(sequence: number): void {
    this.#isStalled = false
    const pending = this.#commits.findIndex((commit) => commit.sequence > sequence)
    const count = pending === -1 ? this.#commits.length : pending
    for (const { writes } of this.#commits.splice(0, count)) {
      for (const id of writes.documents) {
        const versions = this.#versions.get(id)!
        if (versions.length === 1) this.#versions.delete(id)
        else versions.shift()
      }
    }
    this.#notify()
  }

  /** Fails all waits with UNAVAILABLE, since none of these commits will become durable. */
  rollBack(): void {
    this.#isRolledBack = true
    this.#notify()
  }

  /** Returns the version that the snapshot sees; undefined where no pending commit wrote one. */
  find(id: string, snapshot: number): StoredDocument | null | undefined {
    return this.#versions.get(id)?.findLast(({ sequence }) => sequence <= snapshot)?.document
  }

  /**
   * Returns what pending commits that the snapshot sees wrote in the interval; null if they
   * wrote nothing there, and 'many' where they wrote more documents than a reader merges.
   */
  range(
    index: PhysicalIndex,
    interval: KeyInterval,
    snapshot: number,
  ): PendingRange | 'many' | null {
    const ids = this.#writtenWithin(index, interval, snapshot)
    if (ids === null) return null
    if (ids.size > PENDING_MERGED_MAX) return 'many'
    return pendingRange(index, interval, ids, (id) => this.find(id, snapshot))
  }

  /** Returns the IDs at the ends of the keys; null for none. It ends beyond the bound. */
  #writtenWithin(
    { id: index, table }: PhysicalIndex,
    { lower, upper }: KeyInterval,
    snapshot: number,
  ): ReadonlySet<string> | null {
    const idBytes = idLength(table)
    let ids: Set<string> | null = null
    for (const commit of this.#commits) {
      if (commit.sequence > snapshot) break
      const keys = sortedKeys(commit, index)
      let i = keys.length === 0 ? 0 : firstIndex(keys, (key) => key >= lower)
      for (; i < keys.length && keys[i]! < upper; i++) {
        ids ??= new Set()
        ids.add(keys[i]!.slice(-idBytes))
        if (ids.size > PENDING_MERGED_MAX) return ids
      }
    }
    return ids
  }

  /** Returns whether the snapshot sees commits that were rolled back. */
  isRolledBack(snapshot: number): boolean {
    return this.#isRolledBack && this.#seesPending(snapshot)
  }

  /**
   * Waits until every commit that the snapshot sees is durable. Rejects with UNAVAILABLE where they
   * were rolled back, and while the store is stalled.
   */
  async whenDurable(snapshot: number): Promise<void> {
    while (this.#seesPending(snapshot)) {
      if (this.#isRolledBack) throw rolledBackFault()
      if (this.#isStalled) throw stalledFault()
      await this.#changed.promise
    }
  }

  #seesPending(snapshot: number): boolean {
    const [oldest] = this.#commits
    return oldest !== undefined && oldest.sequence <= snapshot
  }

  #notify(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}

const NO_KEYS: readonly string[] = []

/** Sorts once per commit: it may hold thousands of keys, and an import queries it per document. */
function sortedKeys(commit: PendingCommit, index: number): readonly string[] {
  const written = commit.writes.keys.get(index)
  if (written === undefined) return NO_KEYS
  if (written.length === 1) return written
  commit.sorted ??= new Map()
  let keys = commit.sorted.get(index)
  if (keys === undefined) {
    keys = [...written].sort()
    commit.sorted.set(index, keys)
  }
  return keys
}

/** The failure of a call that depends on a stalled commit, and has not committed itself. */
export function stalledFault(): Fault {
  return new Fault('UNAVAILABLE', { detail: 'documents: the outcome of an earlier commit is open' })
}

/** The failure of a call that depends on a commit whose batch failed. */
export function rolledBackFault(cause?: unknown): Fault {
  return new Fault('UNAVAILABLE', { cause, detail: 'an earlier commit that it depends on failed' })
}
