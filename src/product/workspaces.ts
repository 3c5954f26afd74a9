/**
 * Publication: one package becomes one Workspace revision and one Release, under the HEAD that its
 * publisher expected. Whether the code is what its manifest says is found out by validation.
 */
import { Fault } from '../errors/fault.ts'
import type { Actor } from '../identity/actor.ts'
import type { ControlReader, ControlTx } from '../storage/control/database.ts'
import { advanceRevision } from '../storage/control/environment.ts'
import { insertRelease } from '../storage/control/releases.ts'
import {
  type ExpectedHead,
  findRevisionAfter,
  findWorkspaceHead,
  insertRevision,
  listWorkspaceHeads,
} from '../storage/control/workspaces.ts'
import { sha256 } from '../system/digests.ts'
import type { ProjectId, ReleaseId, RequestId, WorkspaceRevisionId } from '../value/ids.ts'
import { Malformed } from '../value/malformed.ts'
import { parseManifest } from '../value/manifest.ts'
import { decodeArtifact, decodePackage, digestName } from '../value/workspace-package.ts'
import type { Product } from './product.ts'

export type { ExpectedHead } from '../storage/control/workspaces.ts'

export const WORKSPACES_MAX = 1_000

export interface Published {
  readonly workspace: string
  readonly revisionId: WorkspaceRevisionId
  readonly releaseId: ReleaseId
  readonly packageDigest: string
  readonly replayed: boolean
}

interface Candidate {
  readonly workspace: string
  readonly packageDigest: string
  readonly manifest: { readonly digest: string; readonly content: Uint8Array }
  readonly artifact: { readonly digest: string; readonly content: Uint8Array }
}

/**
 * Throws PRODUCT_INVALID for a package that breaks a rule or belongs to another Project,
 * PRODUCT_CAS_CONFLICT where the HEAD is not the expected one. The same package under the same
 * precondition is answered with the first result, however far the HEAD has moved since.
 */
export async function publish(
  app: Pick<Product, 'system' | 'root' | 'audit'>,
  actor: Actor,
  input: {
    readonly frame: Uint8Array
    readonly expectedHead: ExpectedHead
    readonly requestId: RequestId
  },
): Promise<Published> {
  const { control, artifacts, descriptor } = app.root
  const candidate = readCandidate(input.frame, descriptor.projectId)
  const earlier = control.read((reader) => settle(reader, candidate, input.expectedHead))
  if (earlier !== null) return earlier
  // Before the row that names them, or a crash would leave a pointer to missing bytes.
  await artifacts.put(candidate.manifest.digest, candidate.manifest.content)
  await artifacts.put(candidate.artifact.digest, candidate.artifact.content)
  const published = control.transaction((tx) => {
    const meanwhile = settle(tx, candidate, input.expectedHead)
    return meanwhile ?? insert(app, tx, actor, { ...input, candidate })
  })
  app.audit.deliver()
  return published
}

/** Throws PRODUCT_INVALID with the first defect. */
function readCandidate(frame: Uint8Array, projectId: ProjectId): Candidate {
  try {
    const { manifest: text, artifact, packageDigest } = decodePackage(frame, sha256)
    const manifest = parseManifest(text)
    if (manifest.projectId !== projectId) {
      throw new Malformed('the Project of this Environment', '$.projectId')
    }
    const digest = digestName(sha256(artifact))
    if (manifest.artifact.digest !== digest || manifest.artifact.bytes !== artifact.length) {
      throw new Malformed('the digest and length of the artifact', '$.artifact')
    }
    decodeArtifact(artifact, sha256)
    const content = new TextEncoder().encode(text)
    return {
      workspace: manifest.workspace,
      packageDigest,
      manifest: { digest: digestName(sha256(content)), content },
      artifact: { digest, content: artifact },
    }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new Fault('PRODUCT_INVALID', { violations: [{ path: error.path, rule: error.rule }] })
  }
}

/** The earlier result of the same publication, null where this one may go on; else throws. */
function settle(
  reader: ControlReader,
  candidate: Candidate,
  expectedHead: ExpectedHead,
): Published | null {
  const { workspace, packageDigest } = candidate
  const earlier = findRevisionAfter(reader, workspace, expectedHead)
  if (earlier?.packageDigest === packageDigest) return { workspace, ...earlier, replayed: true }
  const head = findWorkspaceHead(reader, workspace)
  if ((head?.revisionId ?? 'empty') !== expectedHead) {
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `HEAD of ${workspace}` })
  }
  if (head === null && listWorkspaceHeads(reader).length >= WORKSPACES_MAX) {
    throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${WORKSPACES_MAX} Workspaces` })
  }
  return null
}

function insert(
  { system, audit }: Pick<Product, 'system' | 'audit'>,
  tx: ControlTx,
  actor: Actor,
  input: {
    readonly candidate: Candidate
    readonly expectedHead: ExpectedHead
    readonly requestId: RequestId
  },
): Published {
  const { workspace, packageDigest, manifest, artifact } = input.candidate
  const releaseId = system.ids.make('rel')
  const revisionId = system.ids.make('wsr')
  const createdAtMicros = system.nowMicros()
  insertRelease(tx, {
    releaseId,
    workspace,
    packageDigest,
    manifest: { digest: manifest.digest, bytes: manifest.content.length },
    artifact: { digest: artifact.digest, bytes: artifact.content.length },
    createdAtMicros,
  })
  insertRevision(tx, {
    revisionId,
    workspace,
    expectedHead: input.expectedHead,
    packageDigest,
    releaseId,
    operatorId: actor.operatorId,
    createdAtMicros,
  })
  advanceRevision(tx)
  audit.append(tx, actor, {
    operation: 'product.workspace.publish',
    subject: revisionId,
    requestId: input.requestId,
  })
  return { workspace, revisionId, releaseId, packageDigest, replayed: false }
}
