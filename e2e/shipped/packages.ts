/** Workspace packages of any size, with one module that does nothing. */
import { sha256 } from '../../src/system/digests.ts'
import { canonicalJson } from '../../src/value/canonical-json.ts'
import {
  digestName,
  encodeArtifact,
  encodePackage,
} from '../../src/value/packages/workspace-package.ts'

export function createPackage(content: {
  readonly projectId: string
  readonly workspace: string
  readonly sourceBytes: number
}): Uint8Array {
  const { projectId, workspace, sourceBytes } = content
  const source = `//${'x'.repeat(sourceBytes - 2)}`
  const artifact = encodeArtifact({ source, sourceMap: null }, sha256)
  const digest = digestName(sha256(artifact))
  const manifest = canonicalJson({
    version: 1,
    projectId,
    workspace,
    artifact: { digest, bytes: artifact.length },
    functions: [],
    tables: [],
  })
  return encodePackage({ manifest, artifact }, sha256)
}
