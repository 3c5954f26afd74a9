/**
 * Publication: one package becomes one Workspace revision and one Release, under the HEAD that its
 * publisher expected. Whether the code is what its manifest says is found out by validation.
 */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import type { StagedArtifact } from '../../storage/artifacts.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import { advanceRevision } from '../../storage/control/environment.ts'
import { insertRelease, type StoredBytes } from '../../storage/control/releases.ts'
import {
  type ExpectedHead,
  findRevisionAfter,
  findWorkspaceHead,
  insertRevision,
  listWorkspaceHeads,
} from '../../storage/control/workspaces.ts'
import { sha256, sha256Stream } from '../../system/digests.ts'
import type { ProjectId, ReleaseId, RequestId, WorkspaceRevisionId } from '../../value/ids.ts'
import { type Chunks, readPackage } from '../../value/packages/package-stream.ts'
import { digestName } from '../../value/packages/workspace-package.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { parseManifest } from '../../wire/files/manifest.ts'
import type { Product } from '../product.ts'
import { retireUnused } from '../releases/retire.ts'

export type { ExpectedHead } from '../../storage/control/workspaces.ts'

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
  readonly artifact: StoredBytes
}

type App = Pick<
  Product,
  'system' | 'root' | 'audit' | 'serving' | 'collection' | 'engineCollection'
>

/**
 * Reads the frame as it arrives, the artifact straight to the disk. Throws PRODUCT_INVALID for a
 * package that breaks a rule or belongs to another Project, PRODUCT_CAS_CONFLICT where the HEAD is
 * not the expected one, PRODUCT_UNAVAILABLE, and what `frame` and `authorized` throw. The same
 * package under the same precondition is answered with the first result, however far the HEAD has
 * moved since.
 */
export async function publish(
  app: App,
  actor: Actor,
  input: {
    readonly frame: Chunks
    readonly expectedHead: ExpectedHead
    readonly requestId: RequestId
    readonly authorized: Authorized
  },
): Promise<Published> {
  const staged = await app.root.artifacts.stage()
  try {
    const candidate = await readCandidate(input.frame, staged, app.root.descriptor.projectId)
    const { expectedHead } = input
    const earlier = app.root.control.read((reader) => settle(reader, candidate, expectedHead))
    return earlier ?? (await commit(app, actor, { ...input, candidate, staged }))
  } finally {
    await staged.discard()
  }
}

/**
 * Runs `commit`, once, while the publisher is known to be authorized: a body may be on its way for
 * hours. Throws before `commit` where the publisher is not authorized any more.
 */
export type Authorized = <T>(commit: () => T) => Promise<T>

interface Commit {
  readonly candidate: Candidate
  readonly staged: StagedArtifact
  readonly expectedHead: ExpectedHead
  readonly requestId: RequestId
  readonly authorized: Authorized
}

async function commit(app: App, actor: Actor, input: Commit): Promise<Published> {
  const { control, artifacts } = app.root
  const { candidate, staged } = input
  const { manifest, artifact } = candidate
  const published = await app.collection.spare([manifest.digest, artifact.digest], async () => {
    // Before the row that names them, or a crash would leave a pointer to missing bytes.
    await artifacts.put(manifest.digest, manifest.content)
    await staged.keep(artifact.digest)
    return input.authorized(() =>
      control.transaction((tx) => {
        const meanwhile = settle(tx, candidate, input.expectedHead)
        if (meanwhile !== null) return meanwhile
        const inserted = insert(app, tx, actor, input)
        retireUnused(app, tx, actor, input.requestId)
        return inserted
      }),
    )
  })
  app.collection.collect()
  app.engineCollection.collect()
  app.audit.deliver()
  return published
}

/** Throws PRODUCT_INVALID with the first defect. */
async function readCandidate(
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
  input: Commit,
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
    artifact,
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
