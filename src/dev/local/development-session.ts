/** Builds and serves a Workspace of this machine, again after each change of its files. */
import { join } from 'node:path'
import { changesOf } from '../../client/development/changes.ts'
import type { Engine } from '../../engine/engine.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import type { LoadedRelease } from '../../product/ports.ts'
import {
  boundRelease,
  type DevelopmentPorts,
  publishForDevelopment,
} from '../../product/workspaces/development.ts'
import type { Json } from '../../value/strict-json.ts'
import type { WorkspaceBuild } from '../building/build.ts'
import { encodeWorkspacePackage } from '../building/package.ts'
import { type LocalSettings, writeLocalSettings } from '../clients/local-settings.ts'
import { type Save, SaveLoop, type SaveLoopOptions } from '../saves/save-loop.ts'
import { formatProblem } from '../workspace/problems.ts'
import { allowsTargets } from './local-environments.ts'

export const CHANNEL = 'dev'

export interface SessionPorts extends DevelopmentPorts {
  readonly engine: DevelopmentPorts['engine'] & Pick<Engine, 'describe'>
}

export interface SessionOptions
  extends Pick<
    SaveLoopOptions,
    'workspaceDirectory' | 'ignored' | 'included' | 'report' | 'startTypeChecker'
  > {
  readonly ports: SessionPorts
  readonly author: RecordedActor
  /** Called after each build that is served. */
  readonly onServed: (release: LoadedRelease) => void
  /** Called with the served Release after each save, including an invalid one. */
  readonly onSaved: (release: LoadedRelease) => void
  /** The settings for pages on this machine, written beside the client that svc.json names. */
  readonly local: LocalSettings
}

/** The result of a publication. */
interface Served extends Pick<Save, 'startedAt' | 'recovers'> {
  readonly release: LoadedRelease
  readonly previous: LoadedRelease | null
  /** True if `release` differs from the one that was served before. */
  readonly changed: boolean
  readonly build: WorkspaceBuild
}

export class DevelopmentSession {
  readonly #options: SessionOptions
  readonly #saves: SaveLoop
  #served: LoadedRelease | null = null

  constructor(options: SessionOptions) {
    this.#options = options
    this.#saves = new SaveLoop({
      ...options,
      system: options.ports.system,
      isOfSource,
      update: (save) => this.#update(save),
    })
  }

  /** The Release that the last successful build serves; null before the first one. */
  get served(): LoadedRelease | null {
    return this.#served
  }

  /** Builds and serves the current files. Resolves after success or a reported failure. */
  update(): Promise<void> {
    return this.#saves.update()
  }

  /** Stops watching. Resolves once no build is running. */
  close(): Promise<void> {
    return this.#saves.close()
  }

  async #update(save: Save): Promise<WorkspaceBuild> {
    try {
      return await this.#publish(save)
    } finally {
      const { ports, onSaved } = this.#options
      // The Release of the last start is served until a build is valid.
      const release = this.#served ?? (await boundRelease(ports, CHANNEL))
      if (release !== null) onSaved(release)
    }
  }

  async #publish(save: Save): Promise<WorkspaceBuild> {
    const { ports, author, local } = this.#options
    let built = null as WorkspaceBuild | null
    const published = await publishForDevelopment(ports, author, {
      channel: CHANNEL,
      requestId: ports.system.ids.make('req'),
      onMigration: ({ name, state, processed, changed }) => {
        const counts = { processed: Number(processed), changed: Number(changed) }
        this.#options.report({ event: 'migrated', name, state, ...counts })
      },
      build: async (releaseId) => {
        let described: Json = null
        const build = await save.build(async (bundle) => {
          described = await ports.engine.describe({ ...bundle, releaseId })
          return described
        })
        const { directory, client } = build
        // With the Workspace as their target, authors see which argument breaks which rule.
        const target = allowsTargets(ports) ? `workspace:${build.workspace}` : local.target
        if (client !== null) writeLocalSettings(join(directory, client), { ...local, target })
        built = build
        return { frame: encodeWorkspacePackage(build, ports.root.descriptor.projectId), described }
      },
    })
    const { startedAt, recovers } = save
    this.#report({ ...published, startedAt, recovers, build: built! })
    this.#options.onServed(published.release)
    return built!
  }

  #report({ release, previous, changed, startedAt, recovers, build }: Served): void {
    const { ports, report } = this.#options
    const isFirst = this.#served === null
    this.#served = release
    if (!changed && !isFirst && !recovers) return
    const changes = changesOf(release.manifest, (previous ?? release).manifest)
    report({
      event: 'served',
      releaseId: release.releaseId,
      functions: release.functions.size,
      tables: release.tables.size,
      durationMillis: Math.round(ports.system.monotonicMillis() - startedAt),
      changes,
      warnings: [...build.diagnostics.map(formatProblem), ...changes.tables.removed.map(keptText)],
    })
  }
}

/** Returns a notice that the documents of a removed table stay stored, and how to delete them. */
function keptText(table: string): string {
  return [
    `Documents of the table ${table}, if there are any, stay stored, and are back when the schema`,
    'declares it again. To delete them, declare it again, delete them with a Mutation, and remove',
    'it then; or start again with `svc dev --reset`.',
  ].join(' ')
}

/** Returns whether only a change of the source can end the failure. */
function isOfSource(error: unknown): boolean {
  if (!(error instanceof Fault)) return true
  return isFault(error, 'WORKSPACE_INVALID', 'PRODUCT_INCOMPATIBLE', 'PRODUCT_INVALID')
}
