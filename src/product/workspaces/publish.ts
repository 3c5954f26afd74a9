/**
 * Publication: turns one package into one Workspace revision and one Release if the HEAD is the one
 * that the publisher expects. Validation compares the code with its manifest later.
 */

import { Fault } from '../../errors/fault.ts'
import type { RecordedAuthor } from '../../identity/actor.ts'
import type { StagedArtifact } from '../../storage/artifacts.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import { insertRelease } from '../../storage/control/releases.ts'
import {
  type ExpectedHead,
  findRevisionAfter,
  findWorkspaceHead,
  insertRevision,
  listWorkspaceHeads,
} from '../../storage/control/workspaces.ts'
import type { ReleaseId, RequestId, WorkspaceRevisionId } from '../../value/ids.ts'
import type { Chunks } from '../../value/packages/package-stream.ts'
import type { Provenance } from '../../value/packages/provenance.ts'
import type { Authorized, ChangePorts } from '../ports.ts'
import type { ArtifactCollection } from '../releases/artifact-collection.ts'
import type { EngineCollection } from '../releases/engine-collection.ts'
import { retireUnused, type UnusedRetirementPorts } from '../releases/retire.ts'
import { limitReached } from '../resource-faults.ts'
import { type Candidate, readCandidate } from './candidates.ts'

export type { ExpectedHead } from '../../storage/control/workspaces.ts'

/**
 * Every status lists all of them, so this bounds its response.
 * @limit Workspaces and Releases: Workspaces of an Environment
 */
export const WORKSPACES_MAX = 1_000

export interface Published {
  readonly workspace: string
  readonly revisionId: WorkspaceRevisionId
  readonly releaseId: ReleaseId
  readonly packageDigest: string
  readonly replayed: boolean
}

export interface PublicationPorts extends ChangePorts, UnusedRetirementPorts {
  readonly collection: Pick<ArtifactCollection, 'collect' | 'hold'>
  readonly engineCollection: Pick<EngineCollection, 'collect'>
}

/**
 * Publishes a package. Reads the frame as it arrives and writes the artifact straight to the disk.
 * Throws PRODUCT_INVALID for a package that breaks a rule or belongs to another Project,
 * PRODUCT_CAS_CONFLICT if the HEAD is not the expected one, PRODUCT_STATE_CONFLICT if there are too
 * many Workspaces, PRODUCT_UNAVAILABLE, and errors of `frame` and `authorized`. Publishing the same
 * package under the same precondition again returns the first result, however far the HEAD has
 * moved since, and keeps the first provenance.
 */
export async function publish(
  ports: PublicationPorts,
  actor: RecordedAuthor,
  input: {
    readonly frame: Chunks
    readonly expectedHead: ExpectedHead
    /** The Workspace that the package must name; any if it is absent. */
    readonly workspace?: string
    /** The declared origin of the package; none if it is absent. */
    readonly provenance?: Provenance | null
    readonly requestId: RequestId
    readonly authorized: Authorized
  },
): Promise<Published> {
  const staged = await ports.root.artifacts.stage()
  try {
    const candidate = await readCandidate(input.frame, staged, ports.root.descriptor.projectId)
    requireWorkspace(candidate, input.workspace)
    const { expectedHead } = input
    const earlier = ports.root.control.read((reader) =>
      replayOrCheck(reader, candidate, expectedHead),
    )
    return earlier ?? (await commit(ports, actor, { ...input, candidate, staged }))
  } finally {
    await staged.discard()
  }
}

function requireWorkspace({ workspace }: Candidate, required: string | undefined): void {
  if (required === undefined || workspace === required) return
  const violations = [{ path: '$.workspace', rule: 'the Workspace that the request names' }]
  throw new Fault('PRODUCT_INVALID', { violations })
}

interface CommitInput extends PublicationInput {
  readonly staged: StagedArtifact
  readonly authorized: Authorized
}

async function commit(
  ports: PublicationPorts,
  actor: RecordedAuthor,
  input: CommitInput,
): Promise<Published> {
  const { control, artifacts } = ports.root
  const { candidate, staged } = input
  const { manifest, artifact } = candidate
  const published = await ports.collection.hold([manifest.digest, artifact.digest], async () => {
    // Written before the row that references them: a crash must not leave a row without bytes.
    await artifacts.put(manifest.digest, manifest.content)
    await staged.commit(artifact.digest)
    return input.authorized(() =>
      control.transaction((tx) => {
        const meanwhile = replayOrCheck(tx, candidate, input.expectedHead)
        if (meanwhile !== null) return meanwhile
        const inserted = insertPublication(ports, tx, actor, input)
        retireUnused(ports, tx, actor, input.requestId)
        return inserted
      }),
    )
  })
  ports.collection.collect()
  ports.engineCollection.collect()
  ports.audit.deliver()
  return published
}

/**
 * Returns the earlier result of the same publication, or null if this one may be committed. Throws
 * PRODUCT_CAS_CONFLICT and PRODUCT_STATE_CONFLICT.
 */
function replayOrCheck(
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
    throw limitReached('workspace', WORKSPACES_MAX, 'Workspaces')
  }
  return null
}

export interface PublicationInput {
  readonly candidate: Candidate
  readonly expectedHead: ExpectedHead
  readonly provenance?: Provenance | null
  /** The ID of the Release; a new one if it is absent. */
  readonly releaseId?: ReleaseId
  readonly requestId: RequestId
}

/** Inserts the Release and the revision, which becomes the HEAD, into the caller's transaction. */
export function insertPublication(
  { system, audit }: Pick<ChangePorts, 'system' | 'audit'>,
  tx: ControlTx,
  actor: RecordedAuthor,
  input: PublicationInput,
): Published {
  const { workspace, packageDigest, manifest, artifact } = input.candidate
  const { releaseId = system.ids.make('rel') } = input
  const revisionId = system.ids.make('wsr')
  const createdAtMicros = system.nowMicros()
  insertRelease(tx, {
    releaseId,
    workspace,
    packageDigest,
    manifest: { digest: manifest.digest, bytes: manifest.content.length },
    artifact,
    createdAtMicros,
  })
  insertRevision(tx, {
    revisionId,
    workspace,
    expectedHead: input.expectedHead,
    packageDigest,
    releaseId,
    publisherId: 'credentialId' in actor ? actor.credentialId : actor.operatorId,
    createdAtMicros,
    provenance: input.provenance ?? null,
  })
  advanceRevision(tx)
  audit.append(tx, actor, {
    operation: 'product.workspace.publish',
    subject: revisionId,
    requestId: input.requestId,
  })
  return { workspace, revisionId, releaseId, packageDigest, replayed: false }
}
