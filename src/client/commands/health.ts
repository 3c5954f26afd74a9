/** `svc health`: whether the parts of the linked Environment do their work. */
import { command } from '../contexts.ts'
import { openRemote, readHealth } from '../remotes.ts'
import { REMOTE } from './operations.ts'

export const healthCommand = command({
  name: 'health',
  summary: 'Show whether the parts of the Environment do their work',
  details: [
    'The runtime is degraded where the system cannot contain Functions, or runners keep breaking;',
    'documents are degraded while commits fail, as on a full disk, and unavailable where their',
    'store does not answer. The server log says why.',
  ],
  options: REMOTE,
  async run(context, { root }) {
    const { output } = context
    const remote = await openRemote(context, root)
    const health = await output.progress('reading the health', readHealth(remote))
    const rows = health.components.map(({ name, status }) => [name, status])
    const { environmentId } = remote.descriptor
    await output.result(health, [
      `${output.bold(environmentId)}  ${health.status}`,
      '',
      ...output.table(['COMPONENT', 'STATUS'], rows),
    ])
  },
})
