/**
 * Builds and serves a Workspace again after each change of its files. One build runs at a time; a
 * change during a build causes exactly one further build, so that what is served is always the last
 * valid state.
 */
import { dirname, join } from 'node:path'
import { changesOf } from '../../client/commands/releases/changes.ts'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import type { LoadedRelease } from '../../product/releases/release-cache.ts'
import {
  type DevelopmentPorts,
  publishForDevelopment,
} from '../../product/workspaces/development.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { WorkspaceBuild } from '../build.ts'
import { type LocalSettings, writeLocalSettings } from '../clients/local-settings.ts'
import { runBuild } from '../commands.ts'
import { encodeWorkspacePackage } from '../package.ts'
import { formatProblem } from '../problems.ts'
import type { StartTypeChecker } from '../type-check/type-check.ts'
import { WATCH_NOTICES } from '../watching/watch.ts'
import { WorkspaceWatcher } from '../watching/workspace-watcher.ts'
import { rejectionOf } from './rejections.ts'
import { TypeReports } from './type-reports.ts'

export const CHANNEL = 'dev'

export interface SessionOptions {
  readonly ports: DevelopmentPorts
  readonly author: RecordedActor
  /** Absolute path of the Workspace. */
  readonly workspaceDirectory: string
  /** Absolute paths in the Workspace that are not part of it. */
  readonly ignored: ReadonlySet<string>
  readonly report: (event: DevelopmentEvent) => void
  /** Called after each build that is served. */
  readonly onServed: (release: LoadedRelease) => void
  /** The settings of pages on this machine, written beside the client that svc.json names. */
  readonly local: LocalSettings
  /** Absent for a session that leaves types unchecked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
}

/** The result of a publication. */
interface Served {
  readonly release: LoadedRelease
  readonly previous: LoadedRelease | null
  /** Whether `release` is another one than before. */
  readonly changed: boolean
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly build: WorkspaceBuild
}

/** Failures that the source has not caused: the next attempt may succeed without a change. */
const RETRY_MILLIS = 1_000

export class DevelopmentSession {
  readonly #options: SessionOptions
  readonly #builds: CoalescingTask
  readonly #watcher: WorkspaceWatcher
  readonly #types: TypeReports | null
  /** Time of the first change that no build has seen yet; null for none. */
  #changedAtMillis: number | null = null
  #retry: NodeJS.Timeout | null = null
  #lastRejection = ''
  #served: LoadedRelease | null = null

  constructor(options: SessionOptions) {
    const { workspaceDirectory: directory, startTypeChecker: start, report } = options
    this.#options = options
    this.#types = start === undefined ? null : new TypeReports({ directory, start, report })
    this.#builds = new CoalescingTask(
      () => this.#update(),
      (error) => this.#reject(error),
    )
    this.#watcher = new WorkspaceWatcher({
      directory: options.workspaceDirectory,
      ignored: options.ignored,
      onChange: () => this.#changed(),
      onNotice: (notice) => options.report({ event: 'notice', message: WATCH_NOTICES[notice] }),
    })
  }

  /** The Release that the last successful build serves; null before the first one. */
  get served(): LoadedRelease | null {
    return this.#served
  }

  /** Builds and serves what is there now. Resolves when that succeeded or was reported. */
  async update(): Promise<void> {
    this.#changed()
    await this.#builds.whenIdle()
  }

  /** Stops watching. Resolves when no build runs any more. */
  async close(): Promise<void> {
    this.#watcher.close()
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#builds.close()
    await this.#types?.close()
  }

  #changed(): void {
    this.#changedAtMillis ??= this.#options.ports.system.monotonicMillis()
    this.#builds.start()
  }

  async #update(): Promise<void> {
    const { ports, author } = this.#options
    const { system } = ports
    const startedAt = this.#changedAtMillis ?? system.monotonicMillis()
    this.#changedAtMillis = null
    if (this.#retry !== null) clearTimeout(this.#retry)
    let built = null as WorkspaceBuild | null
    const { release, previous, changed } = await publishForDevelopment(ports, author, {
      channel: CHANNEL,
      requestId: system.ids.make('req'),
      build: async (releaseId) => {
        const build = await this.#build((bundle) => {
          return ports.engine.describe({ ...bundle, releaseId })
        })
        built = build
        return encodeWorkspacePackage(build, ports.root.descriptor.projectId)
      },
    })
    this.#report({ release, previous, changed, startedAt, build: built! })
    this.#options.onServed(release)
    // Types may change where the bundle does not.
    this.#types?.check(built!)
  }

  #report({ release, previous, changed, startedAt, build }: Served): void {
    const { ports, report } = this.#options
    const isFirst = this.#served === null
    this.#served = release
    const recovers = this.#lastRejection !== ''
    this.#lastRejection = ''
    if (!changed && !isFirst && !recovers) return
    report({
      event: 'served',
      releaseId: release.releaseId,
      functions: release.functions.size,
      tables: release.tables.size,
      durationMillis: Math.round(ports.system.monotonicMillis() - startedAt),
      changes: changesOf(release.manifest, (previous ?? release).manifest),
      warnings: build.diagnostics.map(formatProblem),
    })
  }

  async #build(describe: Parameters<typeof runBuild>[0]['describe']): Promise<WorkspaceBuild> {
    const { workspaceDirectory, local } = this.#options
    const { build } = await runBuild({ workspaceDirectory, describe })
    const { directory, client } = build
    if (client !== null) writeLocalSettings(join(directory, client), local)
    this.#watcher.follow(outside(build))
    return build
  }

  #reject(error: unknown): void {
    const { report, workspaceDirectory } = this.#options
    const rejection = rejectionOf(error, workspaceDirectory)
    const text = JSON.stringify(rejection)
    const isRetried = !isOfSource(error)
    // An attempt that is repeated without a change says nothing new.
    if (!isRetried || text !== this.#lastRejection) report(rejection)
    this.#lastRejection = text
    if (!isRetried || this.#builds.isClosed) return
    this.#retry = setTimeout(() => this.#builds.start(), RETRY_MILLIS)
  }
}

/** Whether only a change of the source can end the failure. */
function isOfSource(error: unknown): boolean {
  if (!(error instanceof Fault)) return true
  return isFault(error, 'WORKSPACE_INVALID', 'PRODUCT_INCOMPATIBLE', 'PRODUCT_INVALID')
}

/** Returns the directories outside of the Workspace that it imports files of. */
function outside({ directory, bundle }: WorkspaceBuild): string[] {
  const inside = `${directory}/`
  const files = bundle.files.filter((file) => !file.startsWith(inside))
  return [...new Set(files.map((file) => dirname(file)))].sort()
}
