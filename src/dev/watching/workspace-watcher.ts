/**
 * Watches the source of a Workspace: one watch of the system for each directory, since editors
 * replace files by renaming and a watch of a file would follow the old one. Where the system has no
 * watches left it compares the files at intervals instead.
 */
import { type FSWatcher, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { identityOf, isSkipped, readSourceTree, type TreeOptions } from './source-trees.ts'

export type WatchNotice = 'polling' | 'watching' | 'missing' | 'present' | 'truncated'

export interface WatcherOptions {
  /** Absolute path of the Workspace; it may be missing and appear later. */
  readonly directory: string
  /** Absolute paths in the Workspace that are not part of it. */
  readonly ignored?: ReadonlySet<string>
  /** Absolute paths of hidden files that are part of it all the same. */
  readonly included?: ReadonlySet<string>
  /** Called after files changed and then rested for a few milliseconds. */
  readonly onChange: () => void
  readonly onNotice: (notice: WatchNotice) => void
  /** Opens a watch; tests replace it. */
  readonly open?: typeof watch
}

/** Rest after the last event: version control and tools write several files. */
const SETTLE_MILLIS = 12
/** Rest where one file changed and has content. An editor may truncate it before it writes. */
const SETTLE_FILE_MILLIS = 4
/** A change is reported after this time even while files keep changing. */
const SETTLE_MILLIS_MAX = 300
/** Interval at which the Workspace is checked for its existence, and compared without watches. */
const POLL_MILLIS = 500

/** Events that have not been reported yet. */
interface Settling {
  readonly timer: NodeJS.Timeout
  readonly startedAt: number
  /** The path that all events name; null for several paths, or for an unknown one. */
  readonly path: string | null
}

interface Watch {
  readonly watcher: FSWatcher
  readonly identity: string
}

export class WorkspaceWatcher {
  readonly #options: WatcherOptions
  readonly #parts: Pick<TreeOptions, 'ignored' | 'included'>
  readonly #watches = new Map<string, Watch>()
  #imported: readonly string[] = []
  /** The signature of the last comparison; null before the first one and while it is missing. */
  #signature: string | null = null
  #isMissing = false
  #isTruncated = false
  #isPolling = false
  #settling: Settling | null = null
  readonly #poll: NodeJS.Timeout
  #closed = false

  constructor(options: WatcherOptions) {
    const { ignored = new Set(), included = new Set() } = options
    this.#options = options
    this.#parts = { ignored, included }
    this.#read()
    this.#poll = setInterval(() => this.#check(), POLL_MILLIS)
  }

  /** Number of directories that the system watches. */
  get watches(): number {
    return this.#watches.size
  }

  /** Watches also the directories outside of the Workspace that it imports files of. */
  follow(imported: readonly string[]): void {
    if (imported.join('\0') === this.#imported.join('\0')) return
    this.#imported = imported
    this.#read()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#poll)
    if (this.#settling !== null) clearTimeout(this.#settling.timer)
    for (const { watcher } of this.#watches.values()) watcher.close()
    this.#watches.clear()
  }

  #onEvent(directory: string, name: string | null): void {
    if (this.#closed) return
    if (name !== null && isSkipped(directory, name, this.#parts)) return
    const path = name === null ? null : join(directory, name)
    if (path !== null) this.#forget(path)
    this.#settle(path)
  }

  /** Closes the watches of a path that was renamed or removed, even if it exists again. */
  #forget(path: string): void {
    for (const [directory, { watcher }] of this.#watches) {
      if (directory !== path && !directory.startsWith(`${path}/`)) continue
      watcher.close()
      this.#watches.delete(directory)
    }
  }

  #settle(changed: string | null): void {
    const now = performance.now()
    const earlier = this.#settling
    const startedAt = earlier?.startedAt ?? now
    if (earlier !== null) clearTimeout(earlier.timer)
    const path = earlier === null || earlier.path === changed ? changed : null
    const wanted = path !== null && hasContent(path) ? SETTLE_FILE_MILLIS : SETTLE_MILLIS
    const rest = Math.min(wanted, Math.max(0, startedAt + SETTLE_MILLIS_MAX - now))
    const timer = setTimeout(() => {
      this.#settling = null
      this.#read()
      if (!this.#isMissing) this.#options.onChange()
    }, rest)
    this.#settling = { timer, startedAt, path }
  }

  /** Compares at the interval. Events are enough while each directory has a watch. */
  #check(): void {
    const watched = this.#watches.get(this.#options.directory)
    const isSame = watched !== undefined && identityOf(this.#options.directory) === watched.identity
    if (isSame && !this.#isPolling) return
    const before = this.#signature
    this.#read()
    if (this.#signature !== null && this.#signature !== before) this.#options.onChange()
  }

  /** Reads the tree, opens the watches that are missing and closes those of removed directories. */
  #read(): void {
    const { directory, onNotice } = this.#options
    let exhausted = false
    const onDirectory: TreeOptions['onDirectory'] = (path, identity) => {
      if (!exhausted && !this.#open(path, identity)) exhausted = true
    }
    const imported = this.#imported
    const tree = readSourceTree({ directory, ...this.#parts, imported, onDirectory })
    this.#signature = tree?.signature ?? null
    for (const [path, { watcher }] of this.#watches) {
      if (tree?.directories.has(path) === true) continue
      watcher.close()
      this.#watches.delete(path)
    }
    if ((tree === null) !== this.#isMissing) {
      this.#isMissing = tree === null
      onNotice(this.#isMissing ? 'missing' : 'present')
    }
    if (exhausted !== this.#isPolling) {
      this.#isPolling = exhausted
      onNotice(exhausted ? 'polling' : 'watching')
    }
    if (tree?.truncated === true && !this.#isTruncated) onNotice('truncated')
    this.#isTruncated = tree?.truncated === true
  }

  /** Opens a watch unless there is one. Returns false if the system has none left. */
  #open(path: string, identity: string): boolean {
    const known = this.#watches.get(path)
    if (known?.identity === identity) return true
    known?.watcher.close()
    this.#watches.delete(path)
    try {
      const { open = watch } = this.#options
      const watcher = open(path, (_, name) => this.#onEvent(path, name))
      // A directory that is removed may report an error instead of an event.
      watcher.on('error', () => this.#onEvent(path, null))
      this.#watches.set(path, { watcher, identity })
      return true
    } catch (error) {
      // One that was removed meanwhile is found by the event of its parent.
      return (error as NodeJS.ErrnoException).code === 'ENOENT'
    }
  }
}

function hasContent(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size > 0
}
