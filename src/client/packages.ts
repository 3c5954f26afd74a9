/** The sources of a package: a file, a manifest with its artifact, or a Workspace to build. */
import { resolve } from 'node:path'
import { Fault } from '../errors/fault.ts'
import { sha256 } from '../system/digests.ts'
import type { WorkspaceManifest } from '../value/manifest.ts'
import {
  decodePackage,
  encodePackage,
  MANIFEST_BYTES_MAX,
  PACKAGE_BYTES_MAX,
} from '../value/packages/workspace-package.ts'
import { ValidationError } from '../value/validation-error.ts'
import type { Context } from './contexts.ts'
import { flag, option } from './contexts.ts'
import type { BuiltWorkspace, WorkspaceTools } from './development/workspace-tools.ts'
import type { ClientEnvironment } from './environment.ts'
import { readIfPresent } from './files.ts'
import { type Root, resolvePath } from './roots/roots.ts'
import { usage } from './usage.ts'

export interface LoadedPackage {
  readonly frame: Uint8Array
  readonly manifest: WorkspaceManifest
  /** `sha256:<hex>`. */
  readonly packageDigest: string
}

export interface PackageOptions {
  readonly package: string | undefined
  readonly manifest: string | undefined
  readonly artifact: string | undefined
  readonly workspace: string | undefined
  readonly 'no-typecheck': boolean
}

export const NO_TYPECHECK = flag('Build without checking types')

export const PACKAGE_OPTIONS = {
  package: option('FILE', 'A package that `svc build` wrote'),
  manifest: option('FILE', 'A manifest; with --artifact'),
  artifact: option('FILE', 'An artifact; with --manifest'),
  workspace: option('DIR', 'The Workspace to build; by default the one that the root names'),
  'no-typecheck': NO_TYPECHECK,
}

/**
 * Loads or builds the package that the options name. Throws CLIENT_USAGE, CLIENT_FILE_FAILED,
 * CLIENT_PACKAGE_INVALID, WORKSPACE_INVALID.
 */
export async function loadPackage(
  context: Context,
  root: Root,
  options: PackageOptions,
): Promise<LoadedPackage> {
  const ways = [options.package, options.manifest ?? options.artifact, options.workspace]
  if (ways.filter((way) => way !== undefined).length > 1) {
    throw usage('Give one of --package, --manifest with --artifact, and --workspace.')
  }
  const loaded = await check(await frameOf(context, root, options))
  const { projectId } = root.descriptor
  if (loaded.manifest.projectId === projectId) return loaded
  throw new Fault('CLIENT_PACKAGE_INVALID', {
    detail: `It belongs to ${loaded.manifest.projectId}, the root to ${projectId}.`,
  })
}

function frameOf(
  context: Context,
  root: Root,
  options: PackageOptions,
): Uint8Array | Promise<Uint8Array> {
  const { environment } = context
  if (options.package !== undefined) {
    return readRequired(resolvePath(environment, options.package), PACKAGE_BYTES_MAX)
  }
  if (options.manifest === undefined && options.artifact === undefined) {
    return buildNoted(context, root, options)
  }
  if (options.manifest === undefined || options.artifact === undefined) {
    throw usage('Give --manifest and --artifact together.')
  }
  const manifest = readRequired(resolvePath(environment, options.manifest), MANIFEST_BYTES_MAX)
  const artifact = readRequired(resolvePath(environment, options.artifact), PACKAGE_BYTES_MAX)
  return packageInvalid(() =>
    encodePackage({ manifest: Buffer.from(manifest).toString('utf8'), artifact }, sha256),
  )
}

/** The directory that a package is built from; null if it was built before. */
export function sourceDirectory(
  { environment }: Pick<Context, 'environment'>,
  root: Root,
  options: PackageOptions,
): string | null {
  const built = options.package ?? options.manifest ?? options.artifact
  if (built !== undefined) return null
  return workspaceDirectoryOf(environment, root, options.workspace)
}

/** Returns the absolute path of the Workspace that is named, or that the root names. */
export function workspaceDirectoryOf(
  environment: ClientEnvironment,
  { directory, descriptor }: Root,
  workspace: string | undefined,
): string {
  return workspace === undefined
    ? resolve(directory, descriptor.workspace ?? '.')
    : resolvePath(environment, workspace)
}

type BuildOptions = Pick<PackageOptions, 'workspace' | 'no-typecheck'>

async function buildNoted(
  context: Context,
  root: Root,
  options: BuildOptions,
): Promise<Uint8Array> {
  const { frame, warnings } = await buildWorkspace(context, root, options)
  for (const warning of warnings) await context.output.note(`warning: ${warning}`)
  return frame
}

/** Builds a Workspace. Throws CLIENT_USAGE, WORKSPACE_INVALID. */
export async function buildWorkspace(
  context: Context,
  root: Root,
  { workspace, 'no-typecheck': skipsTypes }: BuildOptions,
): Promise<BuiltWorkspace> {
  const { descriptor } = root
  if (workspace === undefined && descriptor.workspace === null) {
    throw usage('The root names no Workspace. Give --workspace DIR or --package FILE.')
  }
  const workspaceDirectory = workspaceDirectoryOf(context.environment, root, workspace)
  const tools = await requireTools(context, 'Building a Workspace')
  const { projectId } = descriptor
  const build = tools.build({ workspaceDirectory, projectId, checksTypes: !skipsTypes })
  return context.output.progress('building the Workspace', build)
}

/** Returns the tools. Throws CLIENT_USAGE in the packed client, which has none. */
export async function requireTools(context: Context, what: string): Promise<WorkspaceTools> {
  if (context.tools !== null) return context.tools()
  throw usage(
    `${what} needs the svc executable, and this is the packed client. ` +
      'Build with the executable, `svc build --out FILE`, then give --package FILE here.',
  )
}

/** Validates a package before it is sent. Throws CLIENT_PACKAGE_INVALID. */
export async function check(frame: Uint8Array): Promise<LoadedPackage> {
  const { parseManifest } = await import('../wire/files/manifest.ts')
  return packageInvalid(() => {
    const { manifest, packageDigest } = decodePackage(frame, sha256)
    return { frame, manifest: parseManifest(manifest), packageDigest }
  })
}

function packageInvalid<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('CLIENT_PACKAGE_INVALID', {
      detail: `Expected ${error.rule} (${error.path}).`,
      cause: error,
    })
  }
}

function readRequired(path: string, bytesMax: number): Uint8Array {
  const bytes = readIfPresent(path, bytesMax)
  if (bytes !== null) return bytes
  throw new Fault('CLIENT_FILE_FAILED', { detail: `The file ${path} does not exist.` })
}
