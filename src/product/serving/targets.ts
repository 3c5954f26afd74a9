/**
 * Resolves the text of a target to the exact Release that serves it (contract/application.md,
 * Targets).
 */

import { Fault } from '../../errors/fault.ts'
import { findChannel } from '../../storage/control/channels.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { findRelease, type ReleaseState } from '../../storage/control/releases.ts'
import { findConvergedPolicy, type WeightedRelease } from '../../storage/control/serving-policy.ts'
import { findWorkspaceHead } from '../../storage/control/workspaces.ts'
import { sha256 } from '../../system/digests.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import { isId, type ReleaseId } from '../../value/ids.ts'
import { TARGET, WEIGHTS_TOTAL } from '../../value/targets.ts'
import { rethrowForApplication } from '../application-faults.ts'
import type { RootPort } from '../ports.ts'
import type { LoadedRelease, ReleaseCache } from '../releases/release-cache.ts'
import { notFound } from '../resource-faults.ts'
import type { ServedPolicy, Serving } from './serving.ts'

export type Target =
  | { readonly kind: 'environment' }
  | { readonly kind: 'channel' | 'workspace'; readonly name: string }
  | { readonly kind: 'release'; readonly releaseId: ReleaseId }

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
  /** Returns one text for all calls that stay on one Release of a weighted policy. */
  affinity(): string | Promise<string>
}

/** Parsed targets by their text: applications name few targets, most of them in every call. */
const parsed = new Map<string, Target>()
const PARSED_MAX = 256

/** Returns null for a text that is no target. */
export function parseTarget(text: string): Target | null {
  const found = parsed.get(text)
  if (found !== undefined) return found
  const target = readTarget(text)
  if (target !== null) {
    if (parsed.size >= PARSED_MAX) parsed.clear()
    parsed.set(text, target)
  }
  return target
}

function readTarget(text: string): Target | null {
  const found = TARGET.exec(text)
  if (found === null) return null
  const [, channel, workspace, releaseId] = found
  if (channel !== undefined) return { kind: 'channel', name: channel }
  if (workspace !== undefined) return { kind: 'workspace', name: workspace }
  return isId('rel', releaseId) ? { kind: 'release', releaseId } : { kind: 'environment' }
}

/** Returns the reason for the log why nothing is served; null while something is. */
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
 * Resolves the target of an application call; returns no promise where the Release is in memory.
 * Only a weighted policy reads `source`, by which it tells callers apart. Throws, or rejects with,
 * REQUEST_INVALID for a text that is no target, TARGET_DENIED, TARGET_NOT_FOUND, RELEASE_RETIRED,
 * UNAVAILABLE, INTERNAL, and what `source` throws.
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
  // The gateway checked this before it read the body; the Environment may be archived since.
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
 * Picks the Release of one caller. Callers with one key stay on one Release while the weights stay,
 * and few callers move when the weights change, as the shares keep the order of the Releases.
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

/** Throws for a Release that is only published: only validated Releases are ever executed. */
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

/**
 * Returns the Release that an operator names, in any state but retired. Throws PRODUCT_INVALID,
 * PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED.
 */
export function locateTarget({ root }: RootPort, text: string): ReleaseId {
  const target = parseTarget(text)
  if (target === null) {
    throw new Fault('PRODUCT_INVALID', { violations: [{ path: 'target', rule: 'a target' }] })
  }
  return root.control.read((reader) => {
    const releaseId = namedRelease(reader, target)
    const state: ReleaseState | undefined =
      releaseId === null ? undefined : findRelease(reader, releaseId)?.state
    if (state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
    if (state === undefined) {
      const rule = 'a Channel, Release, Workspace or policy that has a Release'
      throw notFound({ path: 'target', rule, detail: text })
    }
    return releaseId!
  })
}

function namedRelease(reader: ControlReader, target: Target): ReleaseId | null {
  switch (target.kind) {
    case 'channel':
      return findChannel(reader, target.name)?.releaseId ?? null
    case 'workspace':
      return findWorkspaceHead(reader, target.name)?.releaseId ?? null
    case 'release':
      return target.releaseId
    case 'environment':
      return heaviest(findConvergedPolicy(reader)?.releases ?? [])
  }
}

/** Returns the Release with the largest share of callers, ties by ID; null for no Releases. */
export function heaviest(releases: readonly WeightedRelease[]): ReleaseId | null {
  const sorted = releases.toSorted((a, b) => b.weight - a.weight)
  return sorted[0]?.releaseId ?? null
}
