/**
 * A Workspace's directory to what is published: the bundle, and what it says of itself when it is
 * loaded. Loading is left to a sandboxed runner; here nothing of the Workspace is executed.
 */
import { sha256 } from '../system/digests.ts'
import type { WorkspaceDescription } from '../value/manifest.ts'
import { encodeArtifact } from '../value/packages/workspace-package.ts'
import type { Json } from '../value/strict-json.ts'
import { ValidationError } from '../value/validation-error.ts'
import { parseDescription } from '../wire/files/manifest.ts'
import { type Bundle, bundleWorkspace } from './bundles.ts'
import { describeValidationError, descriptionProblems } from './descriptions.ts'
import { loadFailure } from './load-failures.ts'
import { type Problem, workspaceFault } from './problems.ts'
import { readWorkspaceFiles } from './workspace-files.ts'

/**
 * Loads a bundle inside the sandbox and answers what it says of itself. FUNCTION_FAILED,
 * LIMIT_EXCEEDED and DEADLINE_EXCEEDED blame the code; their detail says why.
 */
export type Describe = (bundle: Bundle) => Promise<unknown>

export interface WorkspaceBuild {
  /** Absolute. */
  readonly directory: string
  /** The name to publish under. */
  readonly workspace: string
  readonly description: WorkspaceDescription
  readonly bundle: Bundle
  /** The same bytes for the same source. */
  readonly artifact: Uint8Array
  /** What the author should know, although it builds. */
  readonly diagnostics: readonly Problem[]
}

/** Throws WORKSPACE_INVALID, whose detail names file, line and mend of every defect. */
export async function buildWorkspace(
  directory: string,
  { describe }: { readonly describe: Describe },
): Promise<WorkspaceBuild> {
  const files = readWorkspaceFiles(directory)
  const bundle = await bundleWorkspace(files)
  let said: unknown
  try {
    said = await describe(bundle)
  } catch (error) {
    throw loadFailure(error, bundle)
  }
  let description: WorkspaceDescription
  try {
    description = parseDescription(said as Json)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw workspaceFault([describeValidationError(error, said, files)], error)
  }
  const { problems, diagnostics } = descriptionProblems(description, files)
  if (problems.length > 0) throw workspaceFault(problems)
  return {
    directory: files.directory,
    workspace: files.workspace,
    description,
    bundle,
    artifact: encodeArtifact(bundle, sha256),
    diagnostics,
  }
}
