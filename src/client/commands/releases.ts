/** `svc releases`: lists Releases and retires unused ones. */
import { retireRelease } from '../../wire/operations/releases.ts'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import type { Status } from '../../wire/status.ts'
import { type CommandSpec, requiredOption } from '../contexts.ts'
import { sourceText } from '../provenance/provenance.ts'
import { requestCommand } from '../request-commands.ts'
import { readStatusAndPolicy } from '../roots/remotes.ts'
import { requireId } from '../usage.ts'
import { LINKED } from './operations.ts'

const list = requestCommand({
  name: 'releases list',
  summary: 'List the Releases, newest first, with what uses each of them',
  options: LINKED,
  progress: 'reading the Releases',
  async request(remote) {
    const { status, policy } = await readStatusAndPolicy(remote)
    const withUses = (release: Status['releases'][number]) => ({
      ...release,
      ...usesOf(status, policy, release.releaseId),
    })
    return { version: 1, releases: status.releases.map(withUses) }
  },
  rows: ({ releases }) => releases,
  columns: {
    RELEASE: 'releaseId',
    STATE: 'state',
    CREATED: 'createdAtMicros',
    CHANNELS: ({ channels }) => channels.join(',') || '-',
    POLICY: ({ policyWeight }) => String(policyWeight ?? '-'),
    'HEAD OF': ({ workspaces }) => workspaces.join(',') || '-',
    SOURCE: ({ provenance }) => sourceText(provenance),
    MESSAGE: ({ provenance }) => provenance?.message ?? '-',
  },
})

/** Finds the Channels, the weight in the policy and the Workspaces that use a Release. */
function usesOf({ channels, workspaces }: Status, policy: ServingPolicy | null, releaseId: string) {
  const served = policy?.desired.releases.find((item) => item.releaseId === releaseId)
  return {
    policyWeight: served?.weight ?? null,
    channels: channels.filter((item) => item.releaseId === releaseId).map((item) => item.channel),
    workspaces: workspaces.filter((item) => item.releaseId === releaseId).map(({ name }) => name),
  }
}

const retire: CommandSpec = requestCommand({
  name: 'releases retire',
  summary: 'Retire an unused Release permanently',
  details: ['Later calls of the Release fail as gone. Its code is removed.'],
  options: { ...LINKED, release: requiredOption('rel_ID', 'The Release') },
  examples: ['svc releases retire --release rel_...'],
  input: ({ release }) => ({ releaseId: requireId('rel', release, '--release', retire) }),
  progress: 'retiring',
  request: (remote, named) => remote.call(retireRelease, { params: named, subjects: named }),
  explains: {
    PRODUCT_STATE_CONFLICT: {
      next: 'Remove the uses that `svc releases list` shows, then retire the Release.',
    },
  },
  lines: (_, { input: { releaseId } }) => [`${releaseId} is retired.`],
})

export const releaseCommands: readonly CommandSpec[] = [list, retire]
