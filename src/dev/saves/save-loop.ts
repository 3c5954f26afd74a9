/**
 * Runs an update now and after each change of a Workspace. One update runs at a time; a change
 * during an update causes exactly one further update, so that the last one has the last state.
 */
import { dirname } from 'node:path'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { System } from '../../system/system.ts'
import type { Describe, WorkspaceBuild } from '../building/build.ts'
import { runBuild } from '../building/commands.ts'
import type { StartTypeChecker } from '../type-check/type-check.ts'
import { WATCH_NOTICES } from '../watching/watch.ts'
import { WorkspaceWatcher } from '../watching/workspace-watcher.ts'
import { explainRejection } from './rejections.ts'
import { TypeReports } from './type-reports.ts'

export interface SaveLoopOptions {
  readonly system: Pick<System, 'monotonicMillis'>
  /** Absolute path of the Workspace. */
  readonly workspaceDirectory: string
  /** Absolute paths in the directory that do not belong to the Workspace. */
  readonly ignored: ReadonlySet<string>
  /** Absolute paths of hidden files that belong to the Workspace. */
  readonly included?: ReadonlySet<string>
  readonly report: (event: DevelopmentEvent) => void
  /** Absent if types are not checked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
  /** Builds with `build` and publishes. Returns the build, whose types are checked afterwards. */
  readonly update: (save: Save) => Promise<WorkspaceBuild>
  /** Returns whether only a change of the source can end the failure; others are retried. */
  readonly isOfSource: (error: unknown) => boolean
}

/** The state of the files that one update publishes. */
export interface Save {
  readonly build: (describe: Describe) => Promise<WorkspaceBuild>
  /** Monotonic milliseconds of the first change since the last update. */
  readonly startedAt: number
  /** True if the last update was rejected. */
  readonly recovers: boolean
}

/** Codes of failures that the source did not cause: a retry may succeed without a change. */
const RETRY_MILLIS = 1_000

export class SaveLoop {
  readonly #options: SaveLoopOptions
  readonly #updates: CoalescingTask
  readonly #watcher: WorkspaceWatcher
  readonly #types: TypeReports | null
  /** Time of the first change since the last update; null without one. */
  #changedAtMillis: number | null = null
  #retry: NodeJS.Timeout | null = null
  #lastRejection = ''

  constructor(options: SaveLoopOptions) {
    const { workspaceDirectory: directory, startTypeChecker: start, report } = options
    this.#options = options
    this.#types = start === undefined ? null : new TypeReports({ directory, start, report })
    this.#updates = new CoalescingTask(
      () => this.#update(),
      (error) => this.#reject(error),
    )
    this.#watcher = new WorkspaceWatcher({
      directory,
      ignored: options.ignored,
      ...(options.included && { included: options.included }),
      onChange: () => this.#changed(),
      onNotice: (notice) => report({ event: 'notice', message: WATCH_NOTICES[notice] }),
    })
  }

  /** Updates to the current files. Resolves after success or a reported failure. */
  async update(): Promise<void> {
    this.#changed()
    await this.#updates.whenIdle()
  }

  /** Stops watching. Resolves once no update is running. */
  async close(): Promise<void> {
    this.#watcher.close()
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#updates.close()
    await this.#types?.close()
  }

  #changed(): void {
    this.#changedAtMillis ??= this.#options.system.monotonicMillis()
    this.#updates.start()
  }

  async #update(): Promise<void> {
    const { system, update } = this.#options
    const startedAt = this.#changedAtMillis ?? system.monotonicMillis()
    this.#changedAtMillis = null
    if (this.#retry !== null) clearTimeout(this.#retry)
    const build = await update({
      startedAt,
      recovers: this.#lastRejection !== '',
      build: (describe) => this.#build(describe),
    })
    this.#lastRejection = ''
    // A change of types may leave the bundle unchanged.
    this.#types?.check(build)
  }

  async #build(describe: Describe): Promise<WorkspaceBuild> {
    const { workspaceDirectory } = this.#options
    const { build } = await runBuild({ workspaceDirectory, describe })
    this.#watcher.follow(outside(build))
    return build
  }

  #reject(error: unknown): void {
    const { report, workspaceDirectory, isOfSource } = this.#options
    const isRetried = !isOfSource(error)
    const rejection = explainRejection(error, { directory: workspaceDirectory, isRetried })
    const text = JSON.stringify(rejection)
    // A retry that fails in the same way is not reported again.
    if (!isRetried || text !== this.#lastRejection) report(rejection)
    this.#lastRejection = text
    if (!isRetried || this.#updates.isClosed) return
    this.#retry = setTimeout(() => this.#updates.start(), RETRY_MILLIS)
  }
}

/** Returns the directories outside of the Workspace whose files it imports. */
function outside({ directory, bundle }: WorkspaceBuild): string[] {
  const inside = `${directory}/`
  const files = bundle.files.filter((file) => !file.startsWith(inside))
  return [...new Set(files.map((file) => dirname(file)))].sort()
}
