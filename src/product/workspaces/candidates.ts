/** Received packages whose form is checked and whose Release is not stored yet. */
import { Fault } from '../../errors/fault.ts'
import type { StagedArtifact } from '../../storage/artifacts.ts'
import type { StoredBytes } from '../../storage/control/releases.ts'
import { sha256, sha256Stream } from '../../system/digests.ts'
import type { ProjectId } from '../../value/ids.ts'
import type { WorkspaceManifest } from '../../value/manifest.ts'
import {
  type Chunks,
  readPackage,
  type StreamedPackage,
} from '../../value/packages/package-stream.ts'
import { decodePackage, digestName } from '../../value/packages/workspace-package.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseManifest } from '../../wire/files/manifest.ts'

export interface Candidate {
  readonly workspace: string
  readonly packageDigest: string
  readonly declared: WorkspaceManifest
  readonly manifest: { readonly digest: string; readonly content: Uint8Array }
  readonly artifact: StoredBytes
}

/** Reads a package as it arrives. Throws PRODUCT_INVALID with the first defect. */
export async function readCandidate(
  frame: Chunks,
  staged: StagedArtifact,
  projectId: ProjectId,
): Promise<Candidate> {
  try {
    const read = await readPackage(frame, {
      hash: sha256Stream,
      writeArtifact: (bytes) => staged.write(bytes),
    })
    return candidateOf(read, projectId)
  } catch (error) {
    throw packageFault(error)
  }
}

/** A package in memory, with the bytes of its artifact. */
export interface DecodedCandidate extends Candidate {
  readonly artifactBytes: Uint8Array
}

/** Reads a package that is in memory. Throws PRODUCT_INVALID with the first defect. */
export function decodeCandidate(frame: Uint8Array, projectId: ProjectId): DecodedCandidate {
  try {
    const decoded = decodePackage(frame, sha256)
    const { artifact: artifactBytes } = decoded
    const artifact = { digest: digestName(sha256(artifactBytes)), bytes: artifactBytes.length }
    return { ...candidateOf({ ...decoded, artifact }, projectId), artifactBytes }
  } catch (error) {
    throw packageFault(error)
  }
}

function candidateOf(
  { manifest: text, packageDigest, artifact }: StreamedPackage,
  projectId: ProjectId,
): Candidate {
  const declared = parseManifest(text)
  if (declared.projectId !== projectId) {
    throw new ValidationError('the Project of this Environment', '$.projectId')
  }
  const { digest, bytes } = declared.artifact
  if (digest !== artifact.digest || bytes !== artifact.bytes) {
    throw new ValidationError('the digest and length of the artifact', '$.artifact')
  }
  const content = new TextEncoder().encode(text)
  const manifest = { digest: digestName(sha256(content)), content }
  return { workspace: declared.workspace, packageDigest, declared, manifest, artifact }
}

function packageFault(error: unknown): unknown {
  if (!(error instanceof ValidationError)) return error
  const { path, rule } = error
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
