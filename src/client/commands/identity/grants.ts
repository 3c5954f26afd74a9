/** `svc grants`: gives an operator a role at a scope, or revokes its grant there. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { ROLES, type Role } from '../../../value/capabilities.ts'
import { type Scope, scopeEquals } from '../../../value/scope.ts'
import type { GrantField } from '../../../wire/identity/access.ts'
import { changeGrant } from '../../../wire/operations/identity/operators.ts'
import { type CommandSpec, type Context, command, requiredChoice } from '../../contexts.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { printable } from '../../visible-text.ts'
import { findOperator, grantText, OPERATOR } from './operators.ts'
import { SCOPE_KINDS, SCOPE_OPTIONS, type ScopeKind, scopeOf, scopeText } from './scopes.ts'

const SCOPE = {
  scope: requiredChoice('SCOPE', SCOPE_KINDS, 'installation, project or environment'),
  ...SCOPE_OPTIONS,
} as const

interface ScopeGiven {
  readonly scope: ScopeKind
  readonly 'project-id': string | undefined
  readonly 'environment-id': string | undefined
  readonly root: string | undefined
}

const change: CommandSpec = command({
  name: 'grants change',
  summary: 'Give an operator a role at a scope, in place of its grant there',
  details: [
    'Needs operators:manage at the installation, and at the scope each capability that the role',
    'gives. It acts at once, also for sessions that are open. The command may be repeated. Grants',
    'of a managed source are changed at the source alone. The last owner is rejected.',
  ],
  positionals: [OPERATOR],
  options: { role: requiredChoice('ROLE', ROLES, ROLES.join(', ')), ...SCOPE },
  examples: ['svc grants change ana --role observer --scope environment --root .'],
  run: (context, { role, ...given }, [named]) =>
    send(context, change, { named: named!, role, given }),
})

const revoke: CommandSpec = command({
  name: 'grants revoke',
  summary: 'Revoke the grant that an operator has at a scope',
  details: [
    'Needs operators:manage at the installation. It acts at once, also for sessions that are open.',
    'Grants at other scopes stay. The command may be repeated. Grants of a managed source are',
    'revoked at the source alone. The last owner is rejected.',
  ],
  positionals: [OPERATOR],
  options: SCOPE,
  examples: ['svc grants revoke ana --scope environment --root .'],
  run: (context, given, [named]) => send(context, revoke, { named: named!, role: null, given }),
})

async function send(
  context: Context,
  spec: CommandSpec,
  input: { readonly named: string; readonly role: Role | null; readonly given: ScopeGiven },
): Promise<void> {
  const { output } = context
  const { named, role, given } = input
  const scope = await scopeOf(context, spec, {
    kind: given.scope,
    projectId: given['project-id'],
    environmentId: given['environment-id'],
    root: given.root,
  })
  const session = await OperatorSession.open(context)
  const operator = await output.progress('reading the operators', findOperator(session, named))
  const { operatorId, operatorName, grants } = operator
  const body = { scope, role, expectedCapabilities: capabilitiesAt(grants, scope) }
  const subjects = { scope: scopeText(scope) }
  const request = session
    .call(changeGrant, { params: { operatorId }, body, subjects })
    .catch((error) => {
      throw explained(error)
    })
  const changed = await output.progress('changing the grant', request)
  const left = changed.grants.map(grantText).join(', ') || 'no grant'
  const verb = changed.applied ? 'has now' : 'has already'
  await output.result({ ...changed, operatorName }, [
    `${printable(operatorName)} (${operatorId}) ${verb}: ${left}.`,
  ])
}

function capabilitiesAt(
  grants: readonly GrantField[],
  scope: Scope,
): GrantField['capabilities'] | null {
  const isIt = (each: GrantField): boolean =>
    each.source !== 'managed' && scopeEquals(each.scope, scope)
  return grants.find(isIt)?.capabilities ?? null
}

function explained(error: unknown): unknown {
  if (!isFault(error, 'PLATFORM_CONFLICT')) return error
  const detail =
    'Either it is the last owner, and another operator must become one first, or the grant was ' +
    'changed meanwhile.'
  return new Fault('PLATFORM_CONFLICT', { detail, cause: error.cause })
}

export const grantCommands: readonly CommandSpec[] = [change, revoke]
