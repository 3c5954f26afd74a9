/** Builds a Workspace once for all test environments of a process. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { RunnerPool } from '../../engine/runners/runner-pool.ts'
import type { LoadedRelease } from '../../product/ports.ts'
import { sha256 } from '../../system/digests.ts'
import { encodeUlid, parseId } from '../../value/ids.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import { runBuild } from '../building/commands.ts'
import { SCHEMA_FILE } from '../workspace/workspace-files.ts'

export interface TestRelease extends Omit<LoadedRelease, 'manifest'> {
  readonly description: WorkspaceDescription
  /** Absolute path of the Workspace. */
  readonly directory: string
}

export class WorkspaceReleases {
  readonly #describe: RunnerPool['describe']
  readonly #builds = new Map<string, Promise<TestRelease>>()

  constructor(describe: RunnerPool['describe']) {
    this.#describe = describe
  }

  /**
   * Returns the Release of the Workspace at or above a directory, and updates its `_generated`.
   * Throws WORKSPACE_INVALID, CLIENT_FILE_FAILED.
   */
  load(path: string): Promise<TestRelease> {
    const directory = workspaceAbove(path)
    const known = this.#builds.get(directory)
    if (known !== undefined) return known
    const build = this.#build(directory)
    this.#builds.set(directory, build)
    // Not cached: the author may fix the source and open an environment in the same process.
    build.catch(() => this.#builds.delete(directory))
    return build
  }

  async #build(workspaceDirectory: string): Promise<TestRelease> {
    const { build } = await runBuild({
      workspaceDirectory,
      describe: (bundle) => this.#describe({ ...bundle, releaseId: releaseIdOf(bundle) }),
    })
    const { bundle, description, directory } = build
    return {
      releaseId: releaseIdOf(bundle),
      source: bundle.source,
      sourceMap: bundle.sourceMap,
      functions: new Map(description.functions.map((item) => [item.name, item])),
      tables: new Map(description.tables.map((table) => [table.name, table])),
      migrations: new Map((description.migrations ?? []).map((each) => [each.name, each])),
      http: description.http ?? [],
      description,
      directory,
    }
  }
}

/** Derives the ID from the code, so that environments with equal code share runners. */
function releaseIdOf({ source }: { readonly source: string }) {
  return parseId('rel', `rel_${encodeUlid(0, sha256(source))}`)
}

/** Returns the nearest directory upwards that has a schema; the path itself without one. */
function workspaceAbove(path: string): string {
  for (let directory = resolve(path); ; directory = dirname(directory)) {
    if (existsSync(join(directory, SCHEMA_FILE))) return directory
    if (dirname(directory) === directory) return path
  }
}
