/** Builds a Workspace and writes files. The callers print results and failures. */
import { chmodSync, lstatSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SDK_TEXTS } from '../../sdk/embedded.generated.ts'
import type { WriteOptions } from '../../system/files.ts'
import type { ProjectId } from '../../value/ids.ts'
import { clientFiles } from '../clients/client-files.ts'
import { generateFiles, generateReferences } from '../codegen/codegen.ts'
import { linkPackage } from '../testing/package-link.ts'
import type { StartTypeChecker } from '../type-check/type-check.ts'
import { workspaceFault } from '../workspace/problems.ts'
import { withoutLinks } from '../workspace/workspace-files.ts'
import { fileFault, writeFile } from '../workspace/written-files.ts'
import { buildWorkspace, type Describe, type WorkspaceBuild } from './build.ts'
import { encodeWorkspacePackage } from './package.ts'

const READABLE = 0o644

export interface BuildRequest {
  readonly workspaceDirectory: string
  readonly describe: Describe
  /** Absent if types are not checked. */
  readonly startTypeChecker?: StartTypeChecker | undefined
}

export interface BuildResult {
  readonly build: WorkspaceBuild
  /** Generated files that changed, relative to the Workspace, or absolute for a given directory. */
  readonly changed: readonly string[]
}

/**
 * Builds and updates `_generated/`, links it as the package `svc`, and updates the client that
 * svc.json names. Current files are not written, so that file watchers do not fire.
 * Throws WORKSPACE_INVALID, CLIENT_FILE_FAILED.
 */
export async function runBuild({
  workspaceDirectory,
  describe,
  startTypeChecker,
}: BuildRequest): Promise<BuildResult> {
  // The compiler is loaded while the bundle is made.
  const checker = startTypeChecker?.(withoutLinks(workspaceDirectory))
  try {
    const build = await buildWorkspace(workspaceDirectory, { describe })
    const generated = generateFiles(build.description, SDK_TEXTS)
    const { client, description } = build
    const ofClient = client === null ? [] : clientFiles(client, generateReferences(description))
    const changed = [...generated, ...ofClient]
      .filter(({ path, text }) => writeIfChanged(join(build.directory, path), text))
      .map(({ path }) => path)
    linkPackage(build.directory)
    const problems = (await checker?.check(build))?.problems ?? []
    if (problems.length > 0) throw workspaceFault(problems)
    return { build, changed }
  } finally {
    checker?.close()
  }
}

export interface PackageRequest extends BuildRequest {
  readonly projectId: ProjectId
  /** Absolute path of the package file, which is replaced. */
  readonly out: string
}

/** Builds like `runBuild` and writes the package file. */
export async function runPackage(request: PackageRequest): Promise<BuildResult> {
  const result = await runBuild(request)
  write(request.out, encodeWorkspacePackage(result.build, request.projectId), { mode: READABLE })
  return result
}

/**
 * Builds a Workspace and writes the references to its Functions, and the client package, into the
 * directory of an application. Returns the absolute paths of the files that differed. Throws
 * WORKSPACE_INVALID, CLIENT_FILE_FAILED.
 */
export async function runClientCodegen(
  request: BuildRequest & { readonly clientDirectory: string },
): Promise<BuildResult> {
  const { build } = await runBuild(request)
  const files = clientFiles(request.clientDirectory, generateReferences(build.description))
  const changed = files.filter(({ path, text }) => writeIfChanged(path, text))
  return { build, changed: changed.map(({ path }) => path) }
}

function writeIfChanged(path: string, text: string): boolean {
  try {
    // A symbolic link is replaced: its target may belong to something else.
    if (lstatSync(path).isFile() && readFileSync(path, 'utf8') === text) return false
  } catch {
    // The file does not exist yet.
  }
  // The file need not be durable: each build compares it with what it generates.
  write(path, text, { mode: READABLE, isDurable: false })
  return true
}

function write(path: string, content: string | Uint8Array, options: WriteOptions): void {
  try {
    const made = mkdirSync(dirname(path), { recursive: true })
    // The directory is as readable as its files, even if the umask keeps other new files private.
    if (made !== undefined) chmodSync(made, 0o755)
  } catch (error) {
    throw fileFault(path, error)
  }
  writeFile(path, content, options)
}
