/** Targets as applications and operators name them, and the Release of a target now. */
import { Fault } from '../errors/fault.ts'
import { findChannel } from '../storage/control/channels.ts'
import type { ControlReader } from '../storage/control/database.ts'
import { findRelease, type ReleaseState } from '../storage/control/releases.ts'
import { findConvergedPolicy, type WeightedRelease } from '../storage/control/serving-policy.ts'
import { findWorkspaceHead } from '../storage/control/workspaces.ts'
import { isId, type ReleaseId } from '../value/ids.ts'
import { TARGET } from '../value/targets.ts'
import type { RootPort } from './ports.ts'
import { notFound } from './resource-faults.ts'

export type Target =
  | { readonly kind: 'environment' }
  | { readonly kind: 'channel' | 'workspace'; readonly name: string }
  | { readonly kind: 'release'; readonly releaseId: ReleaseId }

/** Parsed targets by their text: applications name few targets, most of them in every call. */
const parsed = new Map<string, Target>()
/** Callers choose the texts, so their number is bounded: the map is cleared when it is full. */
const PARSED_MAX = 256

/** Parses a target; returns null for an invalid one. */
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

/** Returns the Release of a target; null for a target without one that can be served. */
export function findTarget({ root }: RootPort, text: string): ReleaseId | null {
  const target = parseTarget(text)
  if (target === null) return null
  return root.control.read((reader) => {
    const releaseId = namedRelease(reader, target)
    const state = releaseId === null ? undefined : findRelease(reader, releaseId)?.state
    return state === 'validated' ? releaseId : null
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
