/** `svc status`: shows what is published and what serves. */
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import type { Status } from '../../wire/status.ts'
import type { Output } from '../output.ts'
import { sourceText } from '../provenance/provenance.ts'
import { requestCommand } from '../request-commands.ts'
import { readStatusAndPolicy } from '../roots/remotes.ts'
import { ARCHIVED, REMOTE } from './operations.ts'

export const statusCommand = requestCommand({
  name: 'status',
  summary: 'Show Releases and Channels of the linked Environment',
  options: REMOTE,
  progress: 'reading the status',
  async request(remote): Promise<Shown> {
    const { status, policy } = await readStatusAndPolicy(remote)
    return { ...status, servingPolicy: policy && policyOf(policy) }
  },
  lines: (status, { output, server }) =>
    humanStatus(output, server.descriptor.environmentId, status),
})

type Shown = Omit<Status, 'servingPolicy'> & {
  readonly servingPolicy: ReturnType<typeof policyOf> | null
}

/** Combines revisions and Releases of the policy, since the status only has the revisions. */
function policyOf({ desired, observed }: ServingPolicy) {
  const { revision: desiredRevision, mode, releases } = desired
  return { desiredRevision, observedRevision: observed.revision, mode, releases }
}

function humanStatus(output: Output, environmentId: string, status: Shown): string[] {
  return [
    `${output.bold(environmentId)}  ${status.lifecycle}  revision ${status.revision}`,
    ...(status.lifecycle === 'archived' ? [ARCHIVED] : []),
    ...policyLine(status),
    ...output.section(status.servingPolicy?.releases ?? [], {
      POLICY: 'releaseId',
      WEIGHT: 'weight',
    }),
    ...output.section(status.channels, {
      CHANNEL: 'channel',
      RELEASE: 'releaseId',
      REVISION: 'revision',
      HISTORY: ({ history }) => history.join(' '),
    }),
    ...output.section(status.workspaces, {
      WORKSPACE: 'name',
      REVISION: 'revisionId',
      RELEASE: 'releaseId',
    }),
    ...output.section(status.releases, {
      RELEASE: 'releaseId',
      STATE: 'state',
      CREATED: 'createdAtMicros',
      PACKAGE: 'packageDigest',
      SOURCE: ({ provenance }) => sourceText(provenance),
      MESSAGE: ({ provenance }) => provenance?.message ?? '-',
    }),
    ...(status.releases.length === 0 ? ['', 'Nothing is published yet.'] : []),
  ]
}

function policyLine({ servingPolicy }: Shown): string[] {
  if (servingPolicy === null) return []
  const { desiredRevision, observedRevision } = servingPolicy
  return [`environment:default  policy ${desiredRevision}, served ${observedRevision}`]
}
