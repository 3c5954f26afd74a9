/** Encodes the package frame: manifest and artifact of one build, for one Project. */
import { sha256 } from '../../system/digests.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import type { ProjectId } from '../../value/ids.ts'
import type { WorkspaceManifest } from '../../value/manifest.ts'
import { digestName, encodePackage } from '../../value/packages/workspace-package.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseManifest } from '../../wire/files/manifest.ts'
import { fileProblem, workspaceFault } from '../workspace/problems.ts'
import type { WorkspaceBuild } from './build.ts'

/** Returns the manifest as canonical JSON text. */
export function manifestText(build: WorkspaceBuild, projectId: ProjectId): string {
  const manifest: WorkspaceManifest = {
    version: 1,
    projectId,
    workspace: build.workspace,
    artifact: { digest: digestName(sha256(build.artifact)), bytes: build.artifact.length },
    ...build.description,
  }
  return canonicalJson(manifest as unknown as Json)
}

/** Encodes the frame. Throws WORKSPACE_INVALID if it exceeds the size of a package. */
export function encodeWorkspacePackage(build: WorkspaceBuild, projectId: ProjectId): Uint8Array {
  const manifest = manifestText(build, projectId)
  try {
    parseManifest(manifest)
    return encodePackage({ manifest, artifact: build.artifact }, sha256)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const message = `The package must have ${error.rule} (${error.path}).`
    throw workspaceFault([fileProblem('functions', message, null)], error)
  }
}
