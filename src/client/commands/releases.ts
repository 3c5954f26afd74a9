/** `svc releases`: lists Releases and retires unused ones. */
import { isFault } from '../../errors/fault.ts'
import { formatTimestamp } from '../../value/plain.ts'
import { retireRelease } from '../../wire/operations/releases.ts'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import type { Status } from '../../wire/status.ts'
import { type CommandSpec, command, option, REMOTE_FLAG, requiredOption } from '../contexts.ts'
import { explained } from '../explanations.ts'
import { sourceText } from '../provenance/provenance.ts'
import { openRemote, readStatusAndPolicy } from '../roots/remotes.ts'
import { parseReleaseId } from './promote.ts'

const list: CommandSpec = command({
  name: 'releases list',
  summary: 'List the Releases, newest first, with what uses each of them',
  options: {
    remote: REMOTE_FLAG,
    root: option('DIR', 'The linked root; by default the working directory'),
  },
  async run(context, { root }) {
    const request = readStatusAndPolicy(await openRemote(context, { root }))
    const { status, policy } = await context.output.progress('reading the Releases', request)
    const releases = status.releases.map((release) => ({
      ...release,
      ...usesOf(status, policy, release.releaseId),
    }))
    const rows = releases.map((release) => [
      release.releaseId,
      release.state,
      formatTimestamp(BigInt(release.createdAtMicros)),
      release.channels.join(',') || '-',
      String(release.policyWeight ?? '-'),
      release.workspaces.join(',') || '-',
      sourceText(release.provenance),
      release.provenance?.message ?? '-',
    ])
    const head = [
      'RELEASE',
      'STATE',
      'CREATED',
      'CHANNELS',
      'POLICY',
      'HEAD OF',
      'SOURCE',
      'MESSAGE',
    ]
    await context.output.result({ version: 1, releases }, context.output.table(head, rows))
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

const retire: CommandSpec = command({
  name: 'releases retire',
  summary: 'Retire an unused Release permanently',
  details: ['Later calls of the Release fail as gone. Its code is removed.'],
  options: {
    remote: REMOTE_FLAG,
    root: option('DIR', 'The linked root; by default the working directory'),
    release: requiredOption('rel_ID', 'The Release'),
  },
  examples: ['svc releases retire --release rel_...'],
  async run(context, options) {
    const releaseId = parseReleaseId(options.release, retire)
    const remote = await openRemote(context, options)
    const request = remote.call(retireRelease, { params: { releaseId }, subjects: { releaseId } })
    const retired = await context.output.progress('retiring', request).catch((error) => {
      if (!isFault(error, 'PRODUCT_STATE_CONFLICT')) throw error
      const next = 'Remove the uses that `svc releases list` shows, then retire the Release.'
      throw explained(error, { next })
    })
    await context.output.result(retired, [`${releaseId} is retired.`])
  },
})

export const releaseCommands: readonly CommandSpec[] = [list, retire]
