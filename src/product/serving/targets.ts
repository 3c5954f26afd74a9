/** From a target's text to the exact Release that serves it (Document 2, Targets). */
import { Fault, isFault } from '../../errors/fault.ts'
import { findChannel } from '../../storage/control/channels.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { findRelease, type ReleaseState } from '../../storage/control/releases.ts'
import { findConvergedPolicy, type WeightedRelease } from '../../storage/control/serving-policy.ts'
import { findWorkspaceHead } from '../../storage/control/workspaces.ts'
import type { ApplicationScope } from '../../value/application-scopes.ts'
import { isId, type ReleaseId } from '../../value/ids.ts'
import { TARGET } from '../../value/targets.ts'
import type { Product } from '../product.ts'
import type { LoadedRelease } from '../releases/release-cache.ts'
import type { ServedPolicy } from './serving.ts'
import { pickRelease } from './serving-policy.ts'

export type Target =
  | { readonly kind: 'environment' }
  | { readonly kind: 'channel' | 'workspace'; readonly name: string }
  | { readonly kind: 'release'; readonly releaseId: ReleaseId }

interface AffinitySource {
  /** The same text for the calls that are to stay on one Release of a weighted policy. */
  affinity(): string | Promise<string>
}

/** Applications name few targets, and most of them with every call. */
const KNOWN_MAX = 256
const known = new Map<string, Target>()

/** null for a text that is no target. */
export function parseTarget(text: string): Target | null {
  const found = known.get(text)
  if (found !== undefined) return found
  const target = readTarget(text)
  if (target !== null) {
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(text, target)
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

/**
 * What an Application call with these scopes runs on. Answers at once where the Release is in
 * memory. `source` tells callers apart; a weighted policy alone asks it. Throws, or rejects
 * with, REQUEST_INVALID for a text that is no target, TARGET_DENIED, TARGET_NOT_FOUND,
 * RELEASE_RETIRED, UNAVAILABLE, INTERNAL, and what `source` throws.
 */
export function resolveTarget(
  app: Pick<Product, 'root' | 'releases' | 'serving'>,
  caller: { readonly scopes: readonly ApplicationScope[] },
  text: string,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  try {
    const found = resolve(app, caller, text, source)
    return found instanceof Promise ? found.catch(rethrow) : found
  } catch (error) {
    return rethrow(error)
  }
}

function resolve(
  app: Pick<Product, 'root' | 'releases' | 'serving'>,
  caller: { readonly scopes: readonly ApplicationScope[] },
  text: string,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  const target = parseTarget(text)
  if (target === null) throw new Fault('REQUEST_INVALID', { detail: 'not a target' })
  // The gateway asked the same before it read the body; it may have been archived since.
  if (!app.serving.isStarted) throw new Fault('UNAVAILABLE', { detail: 'nothing is served' })
  switch (target.kind) {
    case 'channel': {
      const release = app.serving.find(target.name)
      if (release === null) {
        throw new Fault('TARGET_NOT_FOUND', { detail: `no Release serves ${text}` })
      }
      return release
    }
    case 'release':
      return loadServable(app, target.releaseId)
    case 'workspace':
      return loadServable(app, developmentRelease(app, caller, target.name))
    case 'environment': {
      // It serves what a policy says and nothing else: no policy, no latest, no fallback.
      const policy = app.serving.findPolicy()
      if (policy === null) throw new Fault('TARGET_NOT_FOUND', { detail: 'no serving policy' })
      return policy instanceof Promise ? releaseLater(policy, source) : releaseOf(policy, source)
    }
  }
}

async function releaseLater(
  policy: Promise<ServedPolicy>,
  source: AffinitySource,
): Promise<LoadedRelease> {
  return releaseOf(await policy, source)
}

function releaseOf(
  policy: ServedPolicy,
  source: AffinitySource,
): LoadedRelease | Promise<LoadedRelease> {
  const [first, ...others] = policy.releases
  if (others.length === 0) return first!.release
  const key = source.affinity()
  return key instanceof Promise
    ? key.then((known) => pickRelease(policy, known))
    : pickRelease(policy, key)
}

function developmentRelease(
  { root }: Pick<Product, 'root'>,
  caller: { readonly scopes: readonly ApplicationScope[] },
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

/** Publication alone is not traffic: only a validated Release is ever executed. */
function loadServable(
  { root, releases }: Pick<Product, 'root' | 'releases'>,
  releaseId: ReleaseId,
): LoadedRelease | Promise<LoadedRelease> {
  const state = root.control.read((reader) => findRelease(reader, releaseId))?.state
  if (state === 'retired') throw new Fault('RELEASE_RETIRED', { detail: `${releaseId} is retired` })
  if (state !== 'validated') {
    throw new Fault('TARGET_NOT_FOUND', { detail: `${releaseId} is ${state ?? 'unknown'}` })
  }
  return releases.peek(releaseId) ?? releases.load(releaseId)
}

/** Failures of the Product's storage under the names that an application may read. */
export function rethrow(error: unknown): never {
  if (isFault(error, 'PRODUCT_UNAVAILABLE')) {
    throw new Fault('UNAVAILABLE', { cause: error, detail: error.detail })
  }
  if (isFault(error, 'PRODUCT_RELEASE_RETIRED')) {
    throw new Fault('RELEASE_RETIRED', { cause: error, detail: error.detail })
  }
  if (isFault(error, 'PRODUCT_CORRUPT', 'PRODUCT_NOT_FOUND')) {
    throw new Fault('INTERNAL', { cause: error, detail: error.detail })
  }
  throw error
}

/**
 * The Release that an operator asks about, in any state but retired. Throws PRODUCT_INVALID,
 * PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED.
 */
export function locateTarget({ root }: Pick<Product, 'root'>, text: string): ReleaseId {
  const target = parseTarget(text)
  if (target === null) {
    throw new Fault('PRODUCT_INVALID', { violations: [{ path: 'target', rule: 'a target' }] })
  }
  return root.control.read((reader) => {
    const releaseId = namedRelease(reader, target)
    const state: ReleaseState | undefined =
      releaseId === null ? undefined : findRelease(reader, releaseId)?.state
    if (state === 'retired') throw new Fault('PRODUCT_RELEASE_RETIRED')
    if (state === undefined) throw new Fault('PRODUCT_NOT_FOUND', { detail: text })
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

/** The Release that most callers of the policy are on; null for no policy. */
function heaviest(releases: readonly WeightedRelease[]): ReleaseId | null {
  const sorted = releases.toSorted((a, b) => b.weight - a.weight)
  return sorted[0]?.releaseId ?? null
}
