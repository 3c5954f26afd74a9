/** Draws the changes of clients, and creates their requests over HTTP. */
import { type Json, operationId } from '../application.ts'
import type { SeededRandom } from '../serializability/random.ts'
import type {
  Change,
  ChannelChange,
  ChannelResource,
  EnvironmentChange,
  Resource,
} from './changes.ts'

/** The state that clients know. Other clients may have changed it since. */
export interface Known {
  readonly releases: readonly string[]
  /** The newest known stamp of each resource. */
  readonly stamps: Readonly<Record<Resource, string>>
}

/** Percentages. */
const SHARES: readonly (readonly [Resource, number])[] = [
  ['channel:production', 25],
  ['channel:staging', 10],
  ['serving_policy', 20],
  ['configuration', 35],
  ['environment', 10],
]
/** Share of the changes that expect a stale state. */
const STALE_SHARE = 0.2
/** Maximum number of revisions that a stale change is behind. */
const STALE_MAX = 5
const NAMES = 12
/** Share of the settings that use a name of the other kind. */
const OTHER_KIND_SHARE = 0.1

export function draw(random: SeededRandom, known: Known): Change {
  const resource = pickResource(random)
  switch (resource) {
    case 'serving_policy':
      return drawPolicy(random, known)
    case 'configuration':
      return drawConfiguration(random, known)
    case 'environment':
      return drawEnvironment(random, known)
    default:
      return drawPromotion(random, known, resource)
  }
}

function pickResource(random: SeededRandom): Resource {
  let percentage = random.below(100)
  for (const [resource, share] of SHARES) {
    if (percentage < share) return resource
    percentage -= share
  }
  throw new Error('the shares do not add up to a hundred')
}

function drawPromotion(
  random: SeededRandom,
  { releases, stamps }: Known,
  resource: ChannelResource,
): Change {
  const isStale = random.chance(STALE_SHARE)
  const expected = isStale ? random.pick([...releases, 'empty']) : stamps[resource]
  // A promotion of the Release that is bound already would change nothing.
  const releaseId = random.pick(releases.filter((release) => release !== expected))
  const verb = expected !== 'empty' && random.chance(0.4) ? 'rollback' : 'promote'
  return { operationId: null, resource, verb, expected, releaseId }
}

function drawPolicy(random: SeededRandom, known: Known): Change {
  const isAtomic = random.chance(0.5)
  const chosen = new Set([random.pick(known.releases)])
  const count = isAtomic ? 1 : 1 + random.below(3)
  while (chosen.size < count) chosen.add(random.pick(known.releases))
  const releases = [...chosen].sort().map((releaseId) => ({ releaseId, weight: 1_000 }))
  releases[0] = { ...releases[0]!, weight: 10_000 - 1_000 * (releases.length - 1) }
  return {
    ...repeatable(random, known, 'serving_policy'),
    resource: 'serving_policy',
    verb: 'set',
    mode: isAtomic ? 'atomic' : 'weighted',
    releases,
  }
}

function drawConfiguration(random: SeededRandom, known: Known): Change {
  const number = random.below(NAMES)
  const name = `NAME_${number}`
  const common = {
    ...repeatable(random, known, 'configuration'),
    resource: 'configuration',
  } as const
  if (random.chance(0.25)) return { ...common, verb: 'delete', name }
  const isSecret = random.chance(OTHER_KIND_SHARE) !== (number % 2 === 0)
  const kind = isSecret ? 'secret' : 'variable'
  return { ...common, verb: 'set', name, kind, value: `value ${random.below(1_000_000)}` }
}

function drawEnvironment(random: SeededRandom, known: Known): Change {
  const common = { ...repeatable(random, known, 'environment'), resource: 'environment' } as const
  const verb = random.pick(['create', 'update', 'update', 'archive', 'restore', 'restore'] as const)
  if (verb === 'archive' || verb === 'restore') return { ...common, verb }
  const configuration = {
    name: `Name ${random.below(1_000)}`,
    slug: `slug-${random.below(1_000)}`,
    region: 'eu-west',
    purpose: random.pick(['development', 'preview', 'staging', 'production']),
    protection: random.pick(['none', 'protected']),
    location: random.pick([null, 'Milan']),
    workspaceTargets: random.pick(['allowed', 'denied']),
  }
  return { ...common, verb, configuration }
}

function repeatable(random: SeededRandom, { stamps }: Known, resource: Resource) {
  const newest = Number(stamps[resource])
  const behind = random.chance(STALE_SHARE) ? 1 + random.below(STALE_MAX) : 0
  return {
    operationId: operationId(),
    expected: String(Math.max(0, newest - behind)),
    changedAtMicros: `${Date.now()}000`,
  }
}

export interface Request {
  readonly method: string
  /** The path below the base path of the Environment. */
  readonly path: string
  readonly body: Json
}

export function toRequest(change: Change): Request {
  if (change.resource === 'serving_policy') {
    const { mode, releases, changedAtMicros } = change
    const body = { expectedRevision: Number(change.expected), mode, releases, changedAtMicros }
    return { method: 'PUT', path: '/serving-policy', body }
  }
  if (change.resource === 'configuration') {
    const { changedAtMicros, expected } = change
    const path = `/configuration/${change.name}`
    const body = { expectedRevision: Number(expected), changedAtMicros }
    if (change.verb === 'delete') return { method: 'DELETE', path, body }
    const { kind, value } = change
    return { method: 'PUT', path, body: { ...body, kind, value } }
  }
  if (change.resource === 'environment') return environmentRequest(change)
  return channelRequest(change)
}

function environmentRequest(change: EnvironmentChange): Request {
  const { changedAtMicros, verb } = change
  const expectedRevision = Number(change.expected)
  if (!('configuration' in change)) {
    return { method: 'POST', path: `/${verb}`, body: { expectedRevision, changedAtMicros } }
  }
  const { configuration } = change
  if (verb === 'create')
    return { method: 'POST', path: '', body: { configuration, changedAtMicros } }
  return { method: 'PUT', path: '', body: { configuration, expectedRevision, changedAtMicros } }
}

function channelRequest({ resource, verb, expected, releaseId }: ChannelChange): Request {
  const path = `/channels/${resource.slice('channel:'.length)}`
  if (verb === 'promote') {
    return { method: 'PUT', path, body: { releaseId, expectedReleaseId: expected } }
  }
  const body = { targetReleaseId: releaseId, expectedReleaseId: expected }
  return { method: 'POST', path: `${path}/rollback`, body }
}
