/**
 * Publication on the author's machine: a package becomes the HEAD of its Workspace, a validated
 * Release and the binding of a Channel in one transaction, after it passed every check of a
 * validation. A package that fails a check changes nothing.
 */
import type { Engine } from '../../engine/engine.ts'
import type { MigrationRecord } from '../../engine/migrations/migration-records.ts'
import { isFault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import { type Channel, findChannel, listChannels } from '../../storage/control/channels.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import {
  findRelease,
  listBoundReleases,
  markReleaseDecided,
  type ReleaseCheck,
} from '../../storage/control/releases.ts'
import { findWorkspaceHead, listWorkspaceHeads } from '../../storage/control/workspaces.ts'
import type { SerialQueue } from '../../system/concurrency.ts'
import type { ReleaseId, RequestId } from '../../value/ids.ts'
import type { Json } from '../../value/strict-json.ts'
import { appendBinding, serveBinding } from '../channels/bindings.ts'
import { CHANNELS_MAX } from '../channels/promote.ts'
import { codeChecks, incompatible, isFailed } from '../compatibility/release-checks.ts'
import { pendingMigrations } from '../compatibility/required-migrations.ts'
import { prepareRelease, uncertainTables } from '../compatibility/stored-documents.ts'
import type { CronsInForce } from '../crons/crons-in-force.ts'
import type { LoadedRelease } from '../ports.ts'
import type { ArtifactCollection } from '../releases/artifact-collection.ts'
import { decodeRelease, type ReleaseCache } from '../releases/release-cache.ts'
import { type RetirementPorts, retire } from '../releases/retire.ts'
import { limitReached } from '../resource-faults.ts'
import type { Serving } from '../serving/serving.ts'
import { type Candidate, decodeCandidate } from './candidates.ts'
import { type DevelopmentMigrationsPorts, migrateForDevelopment } from './development-migrations.ts'
import { insertPublication, WORKSPACES_MAX } from './publish.ts'

export interface DevelopmentPorts extends RetirementPorts {
  readonly engine: Pick<Engine, 'prepare' | 'warm'> &
    RetirementPorts['engine'] &
    DevelopmentMigrationsPorts['engine']
  readonly releases: Pick<ReleaseCache, 'load' | 'add' | 'forget'>
  readonly serving: Pick<Serving, 'bind' | 'state' | 'isServed' | 'whenIdle'>
  readonly collection: Pick<ArtifactCollection, 'collect' | 'hold'>
  readonly crons: Pick<CronsInForce, 'whenIdle'>
  readonly validations: Pick<SerialQueue, 'run'>
}

export interface DevelopmentInput {
  readonly channel: string
  readonly requestId: RequestId
  /** Builds the package. It loads the code in the engine under the ID of the new Release. */
  readonly build: (releaseId: ReleaseId) => Promise<DevelopmentBuild>
  /** Called with each migration that ran before the Release is bound, complete or not. */
  readonly onMigration?: (record: MigrationRecord) => void
}

export interface DevelopmentBuild {
  /** The package. */
  readonly frame: Uint8Array
  /** The description that the loaded code returned. */
  readonly described: Json
}

export interface DevelopmentPublication {
  readonly release: LoadedRelease
  /** The Release that the Channel served before; null for the first one. */
  readonly previous: LoadedRelease | null
  /** False if the Channel served the same package already; then nothing was changed. */
  readonly changed: boolean
}

/**
 * Resolves when the Channel serves the package. Throws PRODUCT_INCOMPATIBLE with a violation for
 * each failed check, PRODUCT_INVALID for a package that breaks a rule, PRODUCT_STATE_CONFLICT if
 * there are too many Workspaces or Channels, PRODUCT_UNAVAILABLE, and errors of `build`.
 */
export async function publishForDevelopment(
  ports: DevelopmentPorts,
  actor: RecordedActor,
  input: DevelopmentInput,
): Promise<DevelopmentPublication> {
  const published = await ports.validations.run(async () => {
    try {
      return await publishChecked(ports, actor, input)
    } finally {
      // Releases what the engine holds for a Release that was not published.
      ports.engineCollection.collect()
    }
  })
  await ports.serving.whenIdle()
  // The Crons of the replaced Release stop first: work that they scheduled now would be pinned to a
  // retired Release.
  await ports.crons.whenIdle()
  if (published.changed) retireReplaced(ports, actor, input.requestId, published.previous)
  return published
}

async function publishChecked(
  ports: DevelopmentPorts,
  actor: RecordedActor,
  input: DevelopmentInput,
): Promise<DevelopmentPublication> {
  const { artifacts, control, descriptor } = ports.root
  const releaseId = ports.system.ids.make('rel')
  const { frame, described } = await input.build(releaseId)
  const candidate = decodeCandidate(frame, descriptor.projectId)
  const bound = control.read((reader) => findChannel(reader, input.channel))
  const previous = bound === null ? null : await loadIfPossible(ports, bound.releaseId)
  if (previous !== null && control.read((reader) => isServing(reader, candidate, bound))) {
    return { release: previous, previous, changed: false }
  }
  const { declared, manifest, artifact, artifactBytes } = candidate
  const release = decodeRelease(releaseId, declared, artifactBytes)
  const ofCode = codeChecks(release.manifest, described)
  if (ofCode.some(isFailed)) throw incompatible(ofCode)
  const { requestId, onMigration = () => undefined } = input
  const publication = { candidate, releaseId, requestId }
  const bytes = manifest.content.length + artifact.bytes
  const store = () =>
    // Written before the row that references them: a crash must not leave a row without bytes.
    Promise.all([
      artifacts.put(manifest.digest, manifest.content),
      artifacts.put(artifact.digest, artifactBytes),
    ])
  const channel = await ports.collection.hold([manifest.digest, artifact.digest], async () => {
    const isMigrating = (await pendingMigrations(ports, release)).length > 0
    if (isMigrating) {
      // Published first: a migration continues in its Release after a restart.
      await store()
      control.transaction((tx) => insertHead(ports, tx, actor, publication))
      ports.releases.add(release, bytes)
      await migrateForDevelopment(ports, release, onMigration)
    }
    const checks = [...ofCode, ...(await checkDocuments(ports, release))]
    if (!isMigrating) await store()
    return commit(ports, actor, { ...publication, channel: input.channel, checks, isMigrating })
  })
  ports.releases.add(release, bytes)
  serveBinding(ports, channel)
  return { release, previous, changed: true }
}

/**
 * Returns the Release that a Channel is bound to; null if there is none or its bytes are damaged.
 */
export async function boundRelease(
  ports: Pick<DevelopmentPorts, 'root' | 'releases'>,
  name: string,
): Promise<LoadedRelease | null> {
  const bound = ports.root.control.read((reader) => findChannel(reader, name))
  return bound === null ? null : loadIfPossible(ports, bound.releaseId)
}

/** Loads a Release; returns null if its bytes are damaged, so that another one can replace it. */
async function loadIfPossible(
  { releases }: Pick<DevelopmentPorts, 'releases'>,
  releaseId: ReleaseId,
): Promise<LoadedRelease | null> {
  try {
    return await releases.load(releaseId)
  } catch (error) {
    if (isFault(error, 'PRODUCT_CORRUPT')) return null
    throw error
  }
}

/** Returns whether the package is the validated HEAD of its Workspace, and bound to the Channel. */
function isServing(reader: ControlReader, candidate: Candidate, bound: Channel | null): boolean {
  const head = findWorkspaceHead(reader, candidate.workspace)
  if (head === null || head.releaseId !== bound?.releaseId) return false
  return findRelease(reader, head.releaseId)?.packageDigest === candidate.packageDigest
}

/**
 * Checks the stored documents, only of tables in which one may not fit. Throws
 * PRODUCT_INCOMPATIBLE.
 */
async function checkDocuments(
  ports: DevelopmentPorts,
  release: LoadedRelease,
): Promise<readonly ReleaseCheck[]> {
  const bound = ports.root.control.read(listBoundReleases)
  const tables =
    bound.length === 0
      ? new Set(release.tables.keys())
      : await uncertainTables(ports, release, bound)
  const ofDocuments = await prepareRelease(ports.engine, release, tables)
  if (ofDocuments.some(isFailed)) throw incompatible(ofDocuments)
  return ofDocuments
}

interface Publication extends Pick<DevelopmentInput, 'requestId'> {
  readonly candidate: Candidate
  readonly releaseId: ReleaseId
}

interface CommitInput extends Publication, Pick<DevelopmentInput, 'channel'> {
  readonly checks: readonly ReleaseCheck[]
  /** True if the Release was published before its migrations. */
  readonly isMigrating: boolean
}

/** Makes the Release the HEAD of its Workspace. */
function insertHead(
  ports: DevelopmentPorts,
  tx: ControlTx,
  actor: RecordedActor,
  publication: Publication,
): void {
  const head = findWorkspaceHead(tx, publication.candidate.workspace)
  if (head === null && listWorkspaceHeads(tx).length >= WORKSPACES_MAX) {
    throw limitReached('workspace', WORKSPACES_MAX, 'Workspaces')
  }
  const expectedHead = head?.revisionId ?? 'empty'
  insertPublication(ports, tx, actor, { ...publication, expectedHead })
}

function commit(ports: DevelopmentPorts, actor: RecordedActor, input: CommitInput): Channel {
  const { releaseId, checks, channel, requestId, isMigrating } = input
  return ports.root.control.transaction((tx) => {
    const current = findChannel(tx, channel)
    if (current === null && listChannels(tx).length >= CHANNELS_MAX) {
      throw limitReached('channel', CHANNELS_MAX, 'Channels')
    }
    if (!isMigrating) insertHead(ports, tx, actor, input)
    const atMicros = ports.system.nowMicros()
    markReleaseDecided(tx, releaseId, { state: 'validated', checks, atMicros })
    const operation = 'product.release.validate'
    ports.audit.append(tx, actor, { operation, subject: releaseId, requestId })
    return appendBinding(ports, tx, actor, { verb: 'promote', ...input, current })
  })
}

/** Failures after which a later publication retires a replaced Release. */
const UNRETIRED = [
  'PRODUCT_STATE_CONFLICT',
  'PRODUCT_RELEASE_RETIRED',
  'PRODUCT_UNAVAILABLE',
] as const

/** Retires the Release that was replaced, unless another Channel or scheduled work needs it. */
function retireReplaced(
  ports: DevelopmentPorts,
  actor: RecordedActor,
  requestId: RequestId,
  previous: LoadedRelease | null,
): void {
  if (previous === null) return
  try {
    retire(ports, actor, { releaseId: previous.releaseId, requestId })
  } catch (error) {
    // A later publication retires it (retireUnused), for example if the disk is full now.
    if (!isFault(error, ...UNRETIRED)) throw error
  }
}
