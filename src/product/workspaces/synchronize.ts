/**
 * Changes of a Workspace with development keys: a synchronization publishes a package, a freeze
 * validates the Release of the HEAD. Neither binds a Channel nor calls a Function. Only an
 * Environment that is meant for development has these rules.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import type { RecordedCredential } from '../../identity/actor.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import {
  findRelease,
  type ReleaseCheck,
  type ReleaseState,
} from '../../storage/control/releases.ts'
import {
  type ExpectedHead,
  findRevisionRelease,
  findWorkspaceHead,
} from '../../storage/control/workspaces.ts'
import type { ConcurrencyLimit } from '../../system/concurrency.ts'
import type {
  CredentialId,
  EnvironmentId,
  ProjectId,
  ReleaseId,
  RequestId,
  WorkspaceRevisionId,
} from '../../value/ids.ts'
import type { Chunks } from '../../value/packages/package-stream.ts'
import type { Provenance } from '../../value/packages/provenance.ts'
import { failedChecks } from '../compatibility/release-checks.ts'
import type { RootPort } from '../ports.ts'
import { type ValidationPorts, validate } from '../releases/validate.ts'
import { notFound } from '../resource-faults.ts'
import { type PublicationPorts, type Published, publish } from './publish.ts'

export interface SynchronizationPorts extends PublicationPorts, ValidationPorts {
  readonly engine: PublicationPorts['engine'] & ValidationPorts['engine']
  readonly publications: Pick<ConcurrencyLimit, 'run'>
}

/** A developer with a development key. */
export interface Developer {
  readonly credentialId: CredentialId
  /** Throws if the key is no longer active, or may not change Workspaces. */
  readonly requireActive: () => void
}

export interface WorkspaceState {
  /** The Project that packages of the Workspace must name. */
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
  readonly workspace: string
  /** Null for a Workspace without a revision. */
  readonly head: {
    readonly revisionId: WorkspaceRevisionId
    readonly releaseId: ReleaseId
    readonly state: ReleaseState
    readonly packageDigest: string
  } | null
}

export interface SynchronizeInput {
  readonly workspace: string
  readonly frame: Chunks
  readonly expectedHead: ExpectedHead
  readonly provenance: Provenance | null
  readonly requestId: RequestId
}

export interface FreezeInput {
  readonly workspace: string
  readonly revisionId: WorkspaceRevisionId
  readonly requestId: RequestId
}

export interface Frozen {
  readonly releaseId: ReleaseId
  /** `validated`; otherwise at least one check failed. */
  readonly state: ReleaseState
  readonly checks: readonly ReleaseCheck[]
}

/** Returns whether developers may change the Environment with each save. */
export function isForDevelopment(purpose: string): boolean {
  return purpose === 'development' || purpose === 'preview'
}

/**
 * Throws ROUTE_NOT_FOUND unless the Environment is for development and allows Workspace targets,
 * and UNAVAILABLE for an archived one.
 */
export function requireSynchronizable({ root }: RootPort): void {
  root.control.read(checkEnvironment)
}

function checkEnvironment(reader: ControlReader): void {
  const { configuration, lifecycle } = findEnvironment(reader)!
  const { purpose, workspaceTargets } = configuration
  if (!isForDevelopment(purpose)) {
    throw new Fault('ROUTE_NOT_FOUND', { detail: `the purpose of the Environment is ${purpose}` })
  }
  if (workspaceTargets === 'denied') {
    throw new Fault('ROUTE_NOT_FOUND', { detail: 'the Environment denies Workspace targets' })
  }
  if (lifecycle === 'archived') {
    throw new Fault('UNAVAILABLE', { detail: 'the Environment is archived' })
  }
}

/** Returns the HEAD of a Workspace; null if it has no revision. */
export function readWorkspace({ root }: RootPort, workspace: string): WorkspaceState {
  const { projectId, environmentId } = root.descriptor
  return root.control.read((reader) => {
    const head = findWorkspaceHead(reader, workspace)
    if (head === null) return { projectId, environmentId, workspace, head: null }
    const { revisionId, releaseId } = head
    const { state, packageDigest } = findRelease(reader, releaseId)!
    const shown = { revisionId, releaseId, state, packageDigest }
    return { projectId, environmentId, workspace, head: shown }
  })
}

/**
 * Publishes a package of the Workspace. Throws the errors of `publish`, PRODUCT_INVALID for a
 * package of another Workspace, and the errors of requireSynchronizable and `requireActive`, which
 * are checked again once the package has arrived.
 */
export function synchronize(
  ports: SynchronizationPorts,
  developer: Developer,
  input: SynchronizeInput,
): Promise<Published> {
  return ports.publications.run(() =>
    publish(ports, authorOf(developer), {
      ...input,
      authorized: async (commit) => {
        // No other code runs between these checks and the commit, which is synchronous.
        requireSynchronizable(ports)
        developer.requireActive()
        return commit()
      },
    }),
  )
}

/**
 * Validates the Release of a revision, which must stay the HEAD until the Release is decided. A
 * repeat for a decided Release returns the decision even if the HEAD has moved. Throws
 * PRODUCT_NOT_FOUND for a revision that the Workspace does not have, PRODUCT_CAS_CONFLICT if it is
 * not the HEAD, PRODUCT_RELEASE_RETIRED, PRODUCT_UNAVAILABLE, PRODUCT_CORRUPT, and the errors of
 * requireSynchronizable and `requireActive`.
 */
export async function freeze(
  ports: SynchronizationPorts,
  developer: Developer,
  { workspace, revisionId, requestId }: FreezeInput,
): Promise<Frozen> {
  const { control } = ports.root
  const requireHead = (reader: ControlReader): void => {
    if (findWorkspaceHead(reader, workspace)?.revisionId === revisionId) return
    throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `HEAD of ${workspace}` })
  }
  const releaseId = control.read((reader) => {
    const found = findRevisionRelease(reader, workspace, revisionId)
    if (found === null) throw revisionNotFound(workspace, revisionId)
    if (findRelease(reader, found)!.state === 'published') requireHead(reader)
    return found
  })
  const confirm = (reader: ControlReader): void => {
    checkEnvironment(reader)
    developer.requireActive()
    requireHead(reader)
  }
  try {
    const input = { releaseId, against: null, requestId, confirm }
    const { state, checks } = await validate(ports, authorOf(developer), input)
    return { releaseId, state, checks }
  } catch (error) {
    if (!isFault(error, 'PRODUCT_INCOMPATIBLE')) throw error
    // The checks are the result, because an application response has no violations.
    const { state, checks } = control.read((reader) => findRelease(reader, releaseId)!)
    return { releaseId, state, checks: state === 'rejected' ? checks : failedChecks(error) }
  }
}

function authorOf({ credentialId }: Developer): RecordedCredential {
  return { credentialId }
}

function revisionNotFound(workspace: string, revisionId: string): Fault {
  const rule = 'a revision of this Workspace'
  return notFound({ path: 'revisionId', rule, detail: `${revisionId} of ${workspace}` })
}
