/**
 * Watches the source of a Workspace with one system watch for each directory: editors replace files
 * by renaming, and the watch of a file would follow the old one. If the system has no watches left,
 * the watcher compares the files at intervals instead.
 */
import { type FSWatcher, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { isSkipped, readIdentity, readSourceTree, type TreeOptions } from './source-trees.ts'

export type WatchNotice = 'polling' | 'watching' | 'missing' | 'present' | 'truncated'

export interface WatcherOptions {
  /** Absolute path of the Workspace; it may be missing and appear later. */
  readonly directory: string
  /** Absolute paths in the directory that do not belong to the Workspace. */
  readonly ignored?: ReadonlySet<string>
  /** Absolute paths of hidden files that belong to the Workspace. */
  readonly included?: ReadonlySet<string>
  /** Called after files changed and then stayed unchanged for a few milliseconds. */
  readonly onChange: () => void
  readonly onNotice: (notice: WatchNotice) => void
  /** Opens a watch; tests replace it. */
  readonly open?: typeof watch
}

/** Quiet time after the last event, since version control and tools write several files. */
const QUIET_MILLIS = 12
/** Shorter quiet time if one file changed. It must have content: editors may truncate it first. */
const QUIET_FILE_MILLIS = 4
/** Time after which a change is reported even if files keep changing. */
const QUIET_MILLIS_MAX = 300
/** Interval of the checks that the Workspace exists, and of comparisons without watches. */
const POLL_MILLIS = 500

/** The quiet time after events that have not been reported yet. */
interface QuietTime {
  readonly timer: NodeJS.Timeout
  readonly startedAt: number
  /** The path if all events have the same one; null for several or an unknown one. */
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
  /** The text of the last comparison; null before the first one and without a Workspace. */
  #signature: string | null = null
  #isMissing = false
  #isTruncated = false
  #isPolling = false
  #quietTime: QuietTime | null = null
  readonly #poll: NodeJS.Timeout
  #closed = false

  constructor(options: WatcherOptions) {
    const { ignored = new Set(), included = new Set() } = options
    this.#options = options
    this.#parts = { ignored, included }
    this.#read()
    this.#poll = setInterval(() => this.#check(), POLL_MILLIS)
  }

  /** Number of directories with a system watch. */
  get watches(): number {
    return this.#watches.size
  }

  /** Also watches the directories outside of the Workspace whose files it imports. */
  follow(imported: readonly string[]): void {
    if (imported.join('\0') === this.#imported.join('\0')) return
    this.#imported = imported
    this.#read()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#poll)
    if (this.#quietTime !== null) clearTimeout(this.#quietTime.timer)
    for (const { watcher } of this.#watches.values()) watcher.close()
    this.#watches.clear()
  }

  #onEvent(directory: string, name: string | null): void {
    if (this.#closed) return
    if (name !== null && isSkipped(directory, name, this.#parts)) return
    const path = name === null ? null : join(directory, name)
    if (path !== null) this.#forget(path)
    this.#restartQuietTime(path)
  }

  /** Closes the watches of a path that was renamed or removed, even if it exists again. */
  #forget(path: string): void {
    for (const [directory, { watcher }] of this.#watches) {
      if (directory !== path && !directory.startsWith(`${path}/`)) continue
      watcher.close()
      this.#watches.delete(directory)
    }
  }

  #restartQuietTime(changed: string | null): void {
    const now = performance.now()
    const earlier = this.#quietTime
    const startedAt = earlier?.startedAt ?? now
    if (earlier !== null) clearTimeout(earlier.timer)
    const path = earlier === null || earlier.path === changed ? changed : null
    const wanted = path !== null && hasContent(path) ? QUIET_FILE_MILLIS : QUIET_MILLIS
    const rest = Math.min(wanted, Math.max(0, startedAt + QUIET_MILLIS_MAX - now))
    const timer = setTimeout(() => {
      this.#quietTime = null
      this.#read()
      if (!this.#isMissing) this.#options.onChange()
    }, rest)
    this.#quietTime = { timer, startedAt, path }
  }

  /** Starts the interval. It compares files only while a directory has no watch. */
  #check(): void {
    const watched = this.#watches.get(this.#options.directory)
    const isSame =
      watched !== undefined && readIdentity(this.#options.directory) === watched.identity
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
      // The watch of a removed directory may report an error instead of an event.
      watcher.on('error', () => this.#onEvent(path, null))
      this.#watches.set(path, { watcher, identity })
      return true
    } catch (error) {
      // If the directory was removed meanwhile, the event of its parent reports that.
      return (error as NodeJS.ErrnoException).code === 'ENOENT'
    }
  }
}

function hasContent(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() === true && stats.size > 0
}
