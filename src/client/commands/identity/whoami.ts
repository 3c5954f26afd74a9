/** `svc whoami`: shows the operator and its current grants. */
import { readSelf } from '../../../wire/operations/identity/auth.ts'
import { command } from '../../contexts.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { printable } from '../../visible-text.ts'
import { scopeText } from './scopes.ts'

export const whoamiCommand = command({
  name: 'whoami',
  summary: 'Show the operator of the session and its grants',
  details: ['Asks the server. `svc auth status` shows the session that this machine stores.'],
  options: {},
  async run(context) {
    const { output } = context
    const request = (await OperatorSession.open(context)).call(readSelf)
    const self = await output.progress('asking the server', request)
    const { operator, session, grants } = self
    const rows = grants.map(({ scope, source, capabilities }) => [
      scopeText(scope),
      source,
      capabilities.join(' '),
    ])
    const name = output.bold(printable(operator.operatorName))
    await output.result(self, [
      `${name}  ${operator.operatorId}  ${session.sessionId}`,
      ...(rows.length === 0
        ? ['This operator has no grant.']
        : output.table(['SCOPE', 'SOURCE', 'CAPABILITIES'], rows)),
    ])
  },
})
