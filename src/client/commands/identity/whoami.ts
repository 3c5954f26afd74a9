/** `svc whoami`: shows the operator and its current grants. */
import { readSelf } from '../../../wire/operations/identity/auth.ts'
import { requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { printable } from '../../visible-text.ts'
import { scopeText } from './scopes.ts'

export const whoamiCommand = requestCommand({
  name: 'whoami',
  summary: 'Show the operator of the session and its grants',
  details: ['Asks the server. `svc auth status` shows the session that this machine stores.'],
  options: {},
  open: OperatorSession.open,
  progress: 'asking the server',
  request: (session) => session.call(readSelf),
  lines: ({ operator: { operatorId, operatorName }, session, grants }, { output }) => [
    `${output.bold(printable(operatorName))}  ${operatorId}  ${session.sessionId}`,
    ...(grants.length === 0
      ? ['This operator has no grant.']
      : output.columns(grants, {
          SCOPE: ({ scope }) => scopeText(scope),
          SOURCE: 'source',
          CAPABILITIES: ({ capabilities }) => capabilities.join(' '),
        })),
  ],
})
