/** `svc health`: shows the health of the linked Environment and its components. */
import { readEnvironment } from '../../wire/operations/environments.ts'
import { readHealth } from '../../wire/operations/instances.ts'
import { requestCommand } from '../request-commands.ts'
import { timeText } from '../timestamps.ts'
import { ARCHIVED, REMOTE } from './operations.ts'

export const healthCommand = requestCommand({
  name: 'health',
  summary: 'Show the health of the Environment and its components',
  details: [
    'The runtime is degraded if the system cannot sandbox Functions or if runners keep failing.',
    'Releases are degraded while one of a Channel or of the serving policy cannot be loaded, or',
    'lacks its files, and unavailable while none can be served: publish its package again.',
    'Documents are degraded while commits fail, for example on a full disk, and unavailable if',
    'their store does not respond. The server log has the reason.',
  ],
  options: REMOTE,
  progress: 'reading the health',
  async request(remote) {
    const answers = Promise.all([remote.call(readHealth), remote.call(readEnvironment)])
    const [health, { desired }] = await answers
    return { ...health, lifecycle: desired.lifecycle }
  },
  lines({ status, components, lifecycle }, { output, server }) {
    const isArchived = lifecycle === 'archived'
    const { environmentId } = server.descriptor
    return [
      `${output.bold(environmentId)}  ${status}${isArchived ? ', archived' : ''}`,
      ...(isArchived ? [ARCHIVED] : []),
      '',
      ...output.columns(components, { COMPONENT: 'name', STATUS: 'status' }),
      ...components.flatMap(({ lastRehearsal: last }) =>
        last === undefined
          ? []
          : ['', `Restore rehearsed ${timeText(last.atMicros)}: ${last.outcome}`],
      ),
    ]
  },
})
