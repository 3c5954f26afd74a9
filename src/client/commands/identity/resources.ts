/** `svc resources`: lists the Environments that the operator may link. */
import { listResources } from '../../../wire/operations/identity/resources.ts'
import { requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'

export const resourcesCommand = requestCommand({
  name: 'resources',
  summary: 'List the Environments that the operator may link',
  options: {},
  open: OperatorSession.open,
  progress: 'reading the resources',
  request: (session) => session.call(listResources),
  rows: ({ resources }) => resources,
  columns: {
    NAME: 'name',
    SLUG: 'slug',
    PROJECT: 'projectId',
    ENVIRONMENT: 'environmentId',
    'MANAGEMENT ORIGIN': ({ managementOrigin }, { server }) =>
      managementOrigin ?? server.profile.authenticationOrigin,
  },
  empty: 'This operator may link no Environment.',
})
