/**
 * The writes of recent commits, in memory: tells whether anything that a transaction read was
 * written after its snapshot. It reaches back to the oldest pinned snapshot, within a bound. For an
 * older snapshot the answer is unknown, which counts as a conflict.
 */
import { assert } from '../../errors/assert.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { type CommitWrites, covers, firstIndex, type ReadSet } from './read-set.ts'

export interface WriteLogOptions {
  /** The newest durable sequence when it starts. */
  readonly latestSequence: number
  /** Most document IDs and index keys in the log. */
  readonly entriesMax: number
  /** Most characters of all document IDs and keys: one key alone may have 2.5 KiB. */
  readonly charactersMax: number
}

/** A part of what a transaction read and another one wrote since, sufficient for locking. */
export interface Conflict {
  readonly documents: readonly string[]
  readonly keys: readonly { readonly index: number; readonly key: string }[]
}

/** Most conflicts that a rerun locks: locks on more would wait for the same commits. */
const CONFLICTS_MAX = 64
/** Fewest dropped items at the front of an array for which it is compacted. */
const COMPACT_MIN = 1024

interface LoggedCommit {
  readonly sequence: number
  readonly writes: CommitWrites
  readonly entries: number
  readonly characters: number
  /** Number of documents that all commits before this one wrote. */
  readonly documentsBefore: number
}

/** Replaces a dropped commit in the array, so that its memory is reclaimed before compaction. */
const DROPPED: LoggedCommit = {
  sequence: 0,
  writes: { documents: [], keys: new Map() },
  entries: 0,
  characters: 0,
  documentsBefore: 0,
}

/** Keys written to one index, in the order of their commits. */
interface KeyLog {
  /** The sequence of the key at the same position. */
  readonly sequences: number[]
  readonly keys: string[]
  /** Position of the first key that is not dropped. */
  head: number
}

export class WriteLog {
  readonly #options: WriteLogOptions
  readonly #commits: LoggedCommit[] = []
  /** The newest sequence by document ID. */
  readonly #lastWrites = new TransientMap<string, number>()
  readonly #keyLogs = new TransientMap<number, KeyLog>()
  #head = 0
  #entries = 0
  #characters = 0
  #documents = 0
  #oldestSnapshot: number
  #latestSequence: number

  constructor(options: WriteLogOptions) {
    this.#options = options
    this.#oldestSnapshot = options.latestSequence
    this.#latestSequence = options.latestSequence
  }

  /** The oldest snapshot whose conflicts are known. */
  get oldestSnapshot(): number {
    return this.#oldestSnapshot
  }

  /** Number of document IDs and keys in the log. */
  get entries(): number {
    return this.#entries
  }

  /**
   * Appends a commit and drops those that no snapshot from `oldestPinned` on can conflict with.
   * Sequences ascend. A commit that exceeds the bounds alone empties the log.
   */
  append(commit: {
    readonly sequence: number
    readonly writes: CommitWrites
    readonly oldestPinned: number
  }): void {
    const { sequence, writes, oldestPinned } = commit
    assert(sequence > this.#latestSequence, 'sequences ascend')
    this.#latestSequence = sequence
    let entries = 0
    let characters = 0
    for (const id of writes.documents) {
      this.#lastWrites.set(id, sequence)
      entries += 1
      characters += id.length
    }
    for (const [index, keys] of writes.keys) {
      entries += keys.length
      characters += this.#appendKeys(index, keys, sequence)
    }
    const documentsBefore = this.#documents
    this.#commits.push({ sequence, writes, entries, characters, documentsBefore })
    this.#documents += writes.documents.length
    this.#entries += entries
    this.#characters += characters
    this.#trim(oldestPinned)
  }

  /**
   * Returns what of the read set was written after `snapshot`: at most 64 documents and 64 keys,
   * null if nothing was, and 'unknown' for a snapshot before the start of the log.
   */
  conflicts(readSet: ReadSet, snapshot: number): Conflict | 'unknown' | null {
    if (snapshot >= this.#latestSequence || readSet.count === 0) return null
    if (snapshot < this.#oldestSnapshot) return 'unknown'
    const documents = this.#writtenDocuments(readSet.documents, snapshot)
    const keys = this.#writtenKeys(readSet, snapshot)
    return documents.length + keys.length === 0 ? null : { documents, keys }
  }

  /** Iterates over the smaller set: the documents read, or those written since the snapshot. */
  #writtenDocuments(read: ReadonlySet<string>, snapshot: number): string[] {
    const found = new Set<string>()
    const first = firstIndex(this.#commits, ({ sequence }) => sequence > snapshot, this.#head)
    const before = this.#commits[first]?.documentsBefore ?? this.#documents
    if (this.#documents - before >= read.size) {
      for (const id of read) {
        if ((this.#lastWrites.get(id) ?? 0) > snapshot) found.add(id)
        if (found.size === CONFLICTS_MAX) break
      }
      return [...found]
    }
    for (let i = first; i < this.#commits.length && found.size < CONFLICTS_MAX; i++) {
      for (const id of this.#commits[i]!.writes.documents) {
        if (read.has(id)) found.add(id)
        if (found.size === CONFLICTS_MAX) break
      }
    }
    return [...found]
  }

  #writtenKeys(readSet: ReadSet, snapshot: number): { index: number; key: string }[] {
    const found: { index: number; key: string }[] = []
    for (const [index, intervals] of readSet.intervals) {
      const log = this.#keyLogs.get(index)
      if (log === undefined) continue
      const first = firstIndex(log.sequences, (sequence) => sequence > snapshot, log.head)
      for (let i = first; i < log.keys.length && found.length < CONFLICTS_MAX; i++) {
        const key = log.keys[i]!
        if (covers(intervals, key)) found.push({ index, key })
      }
    }
    return found
  }

  /** Returns the number of characters appended. */
  #appendKeys(index: number, keys: readonly string[], sequence: number): number {
    if (keys.length === 0) return 0
    let log = this.#keyLogs.get(index)
    if (log === undefined) {
      log = { sequences: [], keys: [], head: 0 }
      this.#keyLogs.set(index, log)
    }
    let characters = 0
    for (const key of keys) {
      log.sequences.push(sequence)
      log.keys.push(key)
      characters += key.length
    }
    return characters
  }

  #trim(oldestPinned: number): void {
    const { entriesMax, charactersMax } = this.#options
    while (this.#head < this.#commits.length) {
      const commit = this.#commits[this.#head]!
      const fits = this.#entries <= entriesMax && this.#characters <= charactersMax
      if (fits && commit.sequence > oldestPinned) break
      this.#drop(commit)
      this.#commits[this.#head] = DROPPED
      this.#head += 1
    }
    if (this.#head >= COMPACT_MIN && this.#head * 2 >= this.#commits.length) {
      this.#commits.splice(0, this.#head)
      this.#head = 0
    }
  }

  #drop({ sequence, writes, entries, characters }: LoggedCommit): void {
    this.#oldestSnapshot = sequence
    this.#entries -= entries
    this.#characters -= characters
    for (const id of writes.documents) {
      if (this.#lastWrites.get(id) === sequence) this.#lastWrites.delete(id)
    }
    for (const [index, keys] of writes.keys) {
      const log = this.#keyLogs.get(index)
      if (log === undefined) continue
      log.head += keys.length
      if (log.head === log.keys.length) {
        this.#keyLogs.delete(index)
      } else if (log.head >= COMPACT_MIN && log.head * 2 >= log.keys.length) {
        log.sequences.splice(0, log.head)
        log.keys.splice(0, log.head)
        log.head = 0
      }
    }
  }
}

/** Returns the keys to lock before the next attempt. */
export function lockKeys({ documents, keys }: Conflict): readonly string[] {
  return [...documents, ...keys.map(({ index, key }) => `${index}:${key}`)]
}
