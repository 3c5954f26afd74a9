/** The tools of the command line for Workspaces. The callers print results and failures. */
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { WorkspaceTools } from '../client/contexts.ts'
import { Fault } from '../errors/fault.ts'
import { SDK_TYPES } from '../sdk/embedded.generated.ts'
import { FileFailure, writeFileAtomic } from '../system/files.ts'
import type { ProjectId } from '../value/ids.ts'
import { buildWorkspace, type Describe, type WorkspaceBuild } from './build.ts'
import { generateFiles } from './codegen.ts'
import { writeWorkspace } from './new-workspaces.ts'
import { encodeWorkspacePackage } from './package.ts'
import { formatProblem, workspaceFault } from './problems.ts'
import type { StartTypeChecker } from './type-check/type-check.ts'

export interface BuildRequest {
  readonly workspaceDirectory: string
  readonly describe: Describe
  /** Absent for a build that leaves types unchecked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
}

export interface BuildResult {
  readonly build: WorkspaceBuild
  /** Files of `_generated` that changed, relative to the Workspace. */
  readonly changed: readonly string[]
}

/**
 * Builds and updates `_generated/`. Files that are current are not written, so that file watchers
 * do not fire. Throws WORKSPACE_INVALID, CLIENT_FILE_FAILED.
 */
export async function runBuild({
  workspaceDirectory,
  describe,
  startTypeChecker,
}: BuildRequest): Promise<BuildResult> {
  // The compiler is loaded while the bundle is made.
  const checker = startTypeChecker?.(realPath(workspaceDirectory))
  try {
    const build = await buildWorkspace(workspaceDirectory, { describe })
    const changed = generateFiles(build.description, SDK_TYPES)
      .filter(({ path, text }) => writeIfChanged(join(build.directory, path), text))
      .map(({ path }) => path)
    const problems = (await checker?.check(build))?.problems ?? []
    if (problems.length > 0) throw workspaceFault(problems)
    return { build, changed }
  } finally {
    checker?.close()
  }
}

/** Resolves symbolic links; a missing directory is reported by the build. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}

export interface PackageRequest extends BuildRequest {
  readonly projectId: ProjectId
  /** Absolute path of the package file; it is replaced. */
  readonly out: string
}

/** Builds like `runBuild` and writes the package file. */
export async function runPackage(request: PackageRequest): Promise<BuildResult> {
  const result = await runBuild(request)
  write(request.out, encodeWorkspacePackage(result.build, request.projectId))
  return result
}

/** The part of the command line that needs the executable. */
export function workspaceTools({
  describe,
  startTypeChecker,
}: Pick<BuildRequest, 'describe' | 'startTypeChecker'>): WorkspaceTools {
  return {
    async build({ workspaceDirectory, projectId, checksTypes }) {
      const request = { workspaceDirectory, describe }
      const checked = checksTypes ? { ...request, startTypeChecker } : request
      const { build } = await runBuild(checked)
      const frame = encodeWorkspacePackage(build, projectId)
      return { frame, warnings: build.diagnostics.map(formatProblem) }
    },
    writeWorkspace: async ({ workspaceDirectory, name }) =>
      writeWorkspace(workspaceDirectory, { name }),
  }
}

function writeIfChanged(path: string, text: string): boolean {
  try {
    // A symbolic link is replaced: its target may belong to something else.
    if (lstatSync(path).isFile() && readFileSync(path, 'utf8') === text) return false
  } catch {
    // The file does not exist yet.
  }
  write(path, text)
  return true
}

function write(path: string, content: string | Uint8Array): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileAtomic(path, content, { mode: 0o644 })
  } catch (error) {
    const reason = error instanceof FileFailure ? `is not ${error.message}` : 'cannot be written'
    throw new Fault('CLIENT_FILE_FAILED', { detail: `${path} ${reason}.`, cause: error })
  }
}
