/**
 * Resolves the text of a target to the exact Release that serves it (contract/application.md,
 * Targets).
 */

import { Fault } from '../../errors/fault.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { findRelease } from '../../storage/control/releases.ts'
import { findWorkspaceHead } from '../../storage/control/workspaces.ts'
import { sha256 } from '../../system/digests.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { WEIGHTS_TOTAL } from '../../value/targets.ts'
import { rethrowForApplication } from '../application-faults.ts'
import type { LoadedRelease, RootPort } from '../ports.ts'
import type { ReleaseCache } from '../releases/release-cache.ts'
import { parseTarget } from '../targets.ts'
import type { ServedPolicy, Serving } from './serving.ts'

interface ReleasesPorts extends RootPort {
  readonly releases: Pick<ReleaseCache, 'peek' | 'load'>
}

export interface TargetPorts extends ReleasesPorts {
  readonly serving: Pick<Serving, 'find' | 'findPolicy' | 'isStarted'>
}

interface ScopedCaller {
  readonly scopes: readonly ApplicationScope[]
}

interface AffinitySource {
  /** Returns the affinity key: calls with equal keys stay on one Release of a weighted policy. */
  affinity(): string | Promise<string>
}

/** Returns why nothing is served, for the log; null while anything is served. */
export function unservedReason({
  root,
  serving,
}: RootPort & { readonly serving: Pick<Serving, 'isStarted'> }): string | null {
  if (serving.isStarted) return null
  const { lifecycle } = root.control.read(findEnvironment)!
  return lifecycle === 'archived'
    ? 'the Environment is archived'
    : 'no Channel or serving policy has a Release yet'
}

/**
 * Resolves the target of an application call; returns no promise if the Release is in memory. Only
 * a weighted policy reads `source`, which distinguishes callers. Throws, or rejects with,
 * REQUEST_INVALID for an invalid target, TARGET_DENIED, TARGET_NOT_FOUND, RELEASE_RETIRED,
 * UNAVAILABLE, INTERNAL, and errors of `source`.
 */
export function resolveTarget(
  ports: TargetPorts,
  caller: ScopedCaller,
  text: string,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  try {
    const found = resolve(ports, caller, text, source)
    return found instanceof Promise ? found.catch(rethrowForApplication) : found
  } catch (error) {
    return rethrowForApplication(error)
  }
}

function resolve(
  ports: TargetPorts,
  caller: ScopedCaller,
  text: string,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  const target = parseTarget(text)
  if (target === null) throw new Fault('REQUEST_INVALID', { detail: 'not a target' })
  // The gateway checked this before it read the body, but the Environment may be archived
  // meanwhile.
  const detail = unservedReason(ports)
  if (detail !== null) throw new Fault('UNAVAILABLE', { detail })
  switch (target.kind) {
    case 'channel': {
      const release = ports.serving.find(target.name)
      if (release === null) {
        throw new Fault('TARGET_NOT_FOUND', { detail: `no Release serves ${text}` })
      }
      return release
    }
    case 'release':
      return loadServable(ports, target.releaseId)
    case 'workspace':
      return loadServable(ports, developmentRelease(ports, caller, target.name))
    case 'environment': {
      // Only a policy decides: without one there is no latest Release and no fallback.
      const policy = ports.serving.findPolicy()
      if (policy === null) throw new Fault('TARGET_NOT_FOUND', { detail: 'no serving policy' })
      return policy instanceof Promise
        ? policyReleaseLater(policy, source)
        : policyRelease(policy, source)
    }
  }
}

async function policyReleaseLater(
  policy: Promise<ServedPolicy>,
  source: AffinitySource,
): Promise<LoadedRelease> {
  return policyRelease(await policy, source)
}

function policyRelease(
  policy: ServedPolicy,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  const [first, ...others] = policy.releases
  if (others.length === 0) return first!.release
  const key = source.affinity()
  return key instanceof Promise
    ? key.then((affinity) => pickRelease(policy, affinity))
    : pickRelease(policy, key)
}

/**
 * Picks the Release of one caller. Callers with equal keys stay on one Release while the weights
 * stay, and few callers move when the weights change, because the shares keep the order of the
 * Releases.
 */
export function pickRelease({ releases }: ServedPolicy, key: string): LoadedRelease {
  const point = sha256(key).readUIntBE(0, 6) % WEIGHTS_TOTAL
  let sum = 0
  for (const { release, weight } of releases) {
    sum += weight
    if (point < sum) return release
  }
  return releases.at(-1)!.release
}

function developmentRelease(
  { root }: RootPort,
  caller: ScopedCaller,
  workspace: string,
): ReleaseId {
  return root.control.read((reader) => {
    const { workspaceTargets } = findEnvironment(reader)!.configuration
    if (workspaceTargets === 'denied') {
      throw new Fault('TARGET_DENIED', { detail: 'the Environment denies Workspace targets' })
    }
    if (!caller.scopes.includes('workspace')) {
      throw new Fault('TARGET_DENIED', { detail: 'the credential lacks the scope workspace' })
    }
    const head = findWorkspaceHead(reader, workspace)
    if (head === null) throw new Fault('TARGET_NOT_FOUND', { detail: `no Workspace ${workspace}` })
    return head.releaseId
  })
}

/**
 * Loads a validated Release. Throws for every other one: only validated Releases are ever executed.
 */
function loadServable(
  { root, releases }: ReleasesPorts,
  releaseId: ReleaseId,
): LoadedRelease | Promise<LoadedRelease> {
  const state = root.control.read((reader) => findRelease(reader, releaseId))?.state
  if (state === 'retired') throw new Fault('RELEASE_RETIRED', { detail: `${releaseId} is retired` })
  if (state !== 'validated') {
    throw new Fault('TARGET_NOT_FOUND', { detail: `${releaseId} is ${state ?? 'unknown'}` })
  }
  return releases.peek(releaseId) ?? releases.load(releaseId)
}
