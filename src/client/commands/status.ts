/** `svc status`: shows what is published and what serves. */
import { formatTimestamp } from '../../value/plain.ts'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import type { Status } from '../../wire/status.ts'
import { type Context, command } from '../contexts.ts'
import { sourceText } from '../provenance/provenance.ts'
import { openRemote, readStatusAndPolicy } from '../roots/remotes.ts'
import { ARCHIVED, REMOTE } from './operations.ts'

export const statusCommand = command({
  name: 'status',
  summary: 'Show Releases and Channels of the linked Environment',
  options: REMOTE,
  async run(context, at) {
    const remote = await openRemote(context, at)
    const request = readStatusAndPolicy(remote)
    const { status, policy } = await context.output.progress('reading the status', request)
    const servingPolicy = policy && policyOf(policy)
    const shown = { ...status, servingPolicy }
    const { environmentId } = remote.descriptor
    await context.output.result(shown, humanStatus(context, environmentId, shown))
  },
})

type Shown = Omit<Status, 'servingPolicy'> & {
  readonly servingPolicy: ReturnType<typeof policyOf> | null
}

/** Combines revisions and Releases of the policy, since the status only has the revisions. */
function policyOf({ desired, observed }: ServingPolicy) {
  const { revision: desiredRevision, mode, releases } = desired
  return { desiredRevision, observedRevision: observed.revision, mode, releases }
}

function humanStatus({ output }: Context, environmentId: string, status: Shown): string[] {
  const served = status.servingPolicy?.releases ?? []
  const policy = served.map(({ releaseId, weight }) => [releaseId, String(weight)])
  const channels = status.channels.map((item) => [
    item.channel,
    item.releaseId,
    item.revision,
    item.history.join(' '),
  ])
  const workspaces = status.workspaces.map((item) => [item.name, item.revisionId, item.releaseId])
  const releases = status.releases.map((item) => [
    item.releaseId,
    item.state,
    formatTimestamp(BigInt(item.createdAtMicros)),
    item.packageDigest,
    sourceText(item.provenance),
    item.provenance?.message ?? '-',
  ])
  const section = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
    rows.length === 0 ? [] : ['', ...output.table(head, rows)]
  return [
    `${output.bold(environmentId)}  ${status.lifecycle}  revision ${status.revision}`,
    ...(status.lifecycle === 'archived' ? [ARCHIVED] : []),
    ...policyLine(status),
    ...section(['POLICY', 'WEIGHT'], policy),
    ...section(['CHANNEL', 'RELEASE', 'REVISION', 'HISTORY'], channels),
    ...section(['WORKSPACE', 'REVISION', 'RELEASE'], workspaces),
    ...section(['RELEASE', 'STATE', 'CREATED', 'PACKAGE', 'SOURCE', 'MESSAGE'], releases),
    ...(status.releases.length === 0 ? ['', 'Nothing is published yet.'] : []),
  ]
}

function policyLine({ servingPolicy }: Shown): string[] {
  if (servingPolicy === null) return []
  const { desiredRevision, observedRevision } = servingPolicy
  return [`environment:default  policy ${desiredRevision}, served ${observedRevision}`]
}
