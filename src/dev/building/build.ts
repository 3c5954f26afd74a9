/**
 * Builds a Workspace: its bundle, and the description that the bundle gives when it is loaded. A
 * sandboxed runner loads it; this process executes no code of the Workspace.
 */
import { sha256 } from '../../system/digests.ts'
import type { WorkspaceDescription } from '../../value/manifest.ts'
import { encodeArtifact } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseDescription } from '../../wire/files/manifest.ts'
import { type Problem, workspaceFault } from '../workspace/problems.ts'
import { readWorkspaceFiles, type WorkspaceModule } from '../workspace/workspace-files.ts'
import { type Bundle, bundleWorkspace } from './bundles.ts'
import { describeValidationError, descriptionProblems } from './descriptions.ts'
import { loadFailure } from './load-failures.ts'

/**
 * Loads a bundle in the sandbox and returns its description. Throws FUNCTION_FAILED, LIMIT_EXCEEDED
 * and DEADLINE_EXCEEDED for failures of the code; their detail has the reason.
 */
export type Describe = (bundle: Bundle) => Promise<unknown>

export interface WorkspaceBuild {
  /** Absolute. */
  readonly directory: string
  /** The name under which the Workspace is published. */
  readonly workspace: string
  /** Directory of the generated client, relative to the Workspace; null for none. */
  readonly client: string | null
  readonly modules: readonly WorkspaceModule[]
  readonly description: WorkspaceDescription
  readonly bundle: Bundle
  /** Bytes of the artifact; equal sources give equal bytes. */
  readonly artifact: Uint8Array
  /** Warnings: problems that do not fail the build. */
  readonly diagnostics: readonly Problem[]
}

/** Builds a Workspace. Throws WORKSPACE_INVALID with the file, line and fix of every problem. */
export async function buildWorkspace(
  directory: string,
  { describe }: { readonly describe: Describe },
): Promise<WorkspaceBuild> {
  const files = readWorkspaceFiles(directory)
  const bundle = await bundleWorkspace(files)
  let described: unknown
  try {
    described = await describe(bundle)
  } catch (error) {
    throw loadFailure(error, bundle)
  }
  let description: WorkspaceDescription
  try {
    description = parseDescription(described as Json)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw workspaceFault([describeValidationError(error, described, files)], error)
  }
  const { problems, diagnostics } = descriptionProblems(description, files)
  if (problems.length > 0) throw workspaceFault(problems)
  return {
    directory: files.directory,
    workspace: files.workspace,
    client: files.client,
    modules: files.modules,
    description,
    bundle,
    artifact: encodeArtifact(bundle, sha256),
    diagnostics,
  }
}
