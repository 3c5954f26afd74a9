/** `svc resources`: lists the Environments that the operator may link. */
import { listResources } from '../../../wire/operations/identity/resources.ts'
import { command } from '../../contexts.ts'
import { OperatorSession } from '../../sessions/sessions.ts'

export const resourcesCommand = command({
  name: 'resources',
  summary: 'List the Environments that the operator may link',
  options: {},
  async run(context) {
    const { output } = context
    const session = await OperatorSession.open(context)
    const found = await output.progress('reading the resources', session.call(listResources))
    const rows = found.resources.map((resource) => [
      resource.name,
      resource.slug,
      resource.projectId,
      resource.environmentId,
      resource.managementOrigin ?? session.profile.authenticationOrigin,
    ])
    const head = ['NAME', 'SLUG', 'PROJECT', 'ENVIRONMENT', 'MANAGEMENT ORIGIN']
    const human =
      rows.length === 0 ? ['This operator may link no Environment.'] : output.table(head, rows)
    await output.result(found, human)
  },
})
