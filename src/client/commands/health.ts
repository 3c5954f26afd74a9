/** `svc health`: shows the health of the linked Environment and its components. */
import { readEnvironment } from '../../wire/operations/environments.ts'
import { readHealth } from '../../wire/operations/instances.ts'
import { command } from '../contexts.ts'
import { openRemote } from '../roots/remotes.ts'
import { ARCHIVED, REMOTE } from './operations.ts'

export const healthCommand = command({
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
  async run(context, at) {
    const { output } = context
    const remote = await openRemote(context, at)
    const request = Promise.all([remote.call(readHealth), remote.call(readEnvironment)])
    const [health, { desired }] = await output.progress('reading the health', request)
    const isArchived = desired.lifecycle === 'archived'
    const rows = health.components.map(({ name, status }) => [name, status])
    const { environmentId } = remote.descriptor
    await output.result({ ...health, lifecycle: desired.lifecycle }, [
      `${output.bold(environmentId)}  ${health.status}${isArchived ? ', archived' : ''}`,
      ...(isArchived ? [ARCHIVED] : []),
      '',
      ...output.table(['COMPONENT', 'STATUS'], rows),
    ])
  },
})
