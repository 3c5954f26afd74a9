/** Packages on their way in: read as they arrive, checked by form, stored nowhere yet. */
import { Fault } from '../../errors/fault.ts'
import type { StagedArtifact } from '../../storage/artifacts.ts'
import type { StoredBytes } from '../../storage/control/releases.ts'
import { sha256, sha256Stream } from '../../system/digests.ts'
import type { ProjectId } from '../../value/ids.ts'
import { type Chunks, readPackage } from '../../value/packages/package-stream.ts'
import { digestName } from '../../value/packages/workspace-package.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseManifest } from '../../wire/files/manifest.ts'

export interface Candidate {
  readonly workspace: string
  readonly packageDigest: string
  readonly manifest: { readonly digest: string; readonly content: Uint8Array }
  readonly artifact: StoredBytes
}

/** Writes the artifact to `staged`. Throws PRODUCT_INVALID with the first defect. */
export async function readCandidate(
  frame: Chunks,
  staged: StagedArtifact,
  projectId: ProjectId,
): Promise<Candidate> {
  try {
    const {
      manifest: text,
      artifact,
      packageDigest,
    } = await readPackage(frame, {
      hash: sha256Stream,
      writeArtifact: (bytes) => staged.write(bytes),
    })
    const manifest = parseManifest(text)
    if (manifest.projectId !== projectId) {
      throw new ValidationError('the Project of this Environment', '$.projectId')
    }
    const { digest, bytes } = manifest.artifact
    if (digest !== artifact.digest || bytes !== artifact.bytes) {
      throw new ValidationError('the digest and length of the artifact', '$.artifact')
    }
    const content = new TextEncoder().encode(text)
    const { workspace } = manifest
    const stored = { digest: digestName(sha256(content)), content }
    return { workspace, packageDigest, manifest: stored, artifact }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new Fault('PRODUCT_INVALID', { violations: [{ path: error.path, rule: error.rule }] })
  }
}
