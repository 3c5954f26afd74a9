/** `svc serve-policy`: shows and replaces the serving policy of environment:default. */
import { isId, type ReleaseId } from '../../value/ids.ts'
import { WEIGHTS_TOTAL } from '../../value/targets.ts'
import { readServingPolicy, setServingPolicy } from '../../wire/operations/serving-policy.ts'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import { type CommandSpec, type Context, requiredOption } from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
import type { Remote } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  REMOTE,
  staleRevision,
} from './operations.ts'

const get = requestCommand({
  name: 'serve-policy get',
  summary: 'Show which Releases serve environment:default, and with which weights',
  options: REMOTE,
  progress: 'reading the policy',
  request: (remote) => remote.call(readServingPolicy),
  lines: (policy, { output }) => {
    const { releases } = policy.desired
    const table = output.columns(releases, { RELEASE: 'releaseId', WEIGHT: 'weight' })
    return [...(releases.length === 0 ? [] : table), progressOf(policy)]
  },
})

const set: CommandSpec = requestCommand({
  name: 'serve-policy set',
  summary: 'Replace the policy of environment:default',
  details: [
    'One Release serves all callers. Several Releases share the callers by weights, which add up',
    `to ${WEIGHTS_TOTAL}, if each accepts the documents of the others. A caller stays on one`,
    'Release while the weights do not change. The policy is served when its Releases are ready.',
  ],
  options: {
    ...changeOptions('the policy'),
    releases: requiredOption('LIST', 'rel_ID, or rel_ID=WEIGHT,rel_ID=WEIGHT'),
  },
  examples: [
    'svc serve-policy set --releases rel_...',
    'svc serve-policy set --releases rel_...=9500,rel_...=500',
  ],
  input(options, _, context) {
    const releases = parseReleases(options.releases)
    const mode = releases.length === 1 ? ('atomic' as const) : ('weighted' as const)
    return { ...changeIntent(context, set, options), mode, releases }
  },
  progress: 'setting the policy',
  async request(remote, { expected, ...change }) {
    const expectedRevision = expected ?? (await remote.call(readServingPolicy)).desired.revision
    return setPolicy(remote, { ...change, expectedRevision })
  },
  explains: staleRevision('svc serve-policy get'),
  lines: (changed) => [
    `${changed.operation.replayed ? 'Set before' : 'Set'}: ${progressOf(changed)}`,
  ],
})

/**
 * Lets one Release serve all callers and returns the policy. Sends no change if it does already, so
 * that a repeated promotion changes nothing.
 */
export async function serveAlone(
  context: Context,
  remote: Remote,
  releaseId: ReleaseId,
): Promise<ServingPolicy> {
  const policy = await remote.call(readServingPolicy)
  const [first, ...others] = policy.desired.releases
  if (first?.releaseId === releaseId && others.length === 0) return policy
  const given = { expected: policy.desired.revision, 'operation-id': undefined }
  const { expected: _, ...intent } = changeIntent(context, set, given)
  const releases = [{ releaseId, weight: WEIGHTS_TOTAL }]
  const expectedRevision = policy.desired.revision
  return setPolicy(remote, { ...intent, expectedRevision, mode: 'atomic', releases })
}

interface PolicyChange extends Omit<ChangeIntent, 'expected'> {
  readonly expectedRevision: string
  readonly mode: 'atomic' | 'weighted'
  readonly releases: readonly { readonly releaseId: ReleaseId; readonly weight: number }[]
}

function setPolicy(remote: Remote, { operationId, ...body }: PolicyChange) {
  const named = body.releases.map(({ releaseId }, i) => [`releases[${i}].releaseId`, releaseId])
  return remote.call(setServingPolicy, { operationId, body, subjects: Object.fromEntries(named) })
}

/** Parses the weights, sorted by Release as the request requires. */
function parseReleases(text: string): PolicyChange['releases'] {
  const parts = text.split(',').map((part) => part.trim().split('='))
  const releases = parts.map(([releaseId, weight, more]) => {
    const share = weight ?? (parts.length === 1 ? String(WEIGHTS_TOTAL) : '')
    if (!isId('rel', releaseId) || !/^[1-9][0-9]{0,4}$/.test(share) || more !== undefined) {
      throw usage('--releases needs a list such as rel_...=9500,rel_...=500.', set)
    }
    return { releaseId, weight: Number(share) }
  })
  if (releases.reduce((sum, { weight }) => sum + weight, 0) !== WEIGHTS_TOTAL) {
    throw usage(`The weights of --releases must add up to ${WEIGHTS_TOTAL}.`, set)
  }
  return releases.sort((a, b) => (a.releaseId < b.releaseId ? -1 : 1))
}

export function progressOf({
  desired,
  observed,
}: Pick<ServingPolicy, 'desired' | 'observed'>): string {
  if (desired.revision === '0') return 'There is no policy: environment:default serves nothing.'
  const served =
    observed.revision === '0' ? 'nothing is served' : `revision ${observed.revision} is served`
  const state =
    desired.revision === observed.revision ? 'and is served' : `and ${served} until it is applied`
  return `revision ${desired.revision} (${desired.mode}) is desired, ${state}.`
}

export const servePolicyCommands: readonly CommandSpec[] = [get, set]
