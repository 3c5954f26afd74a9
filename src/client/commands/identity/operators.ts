/** `svc operators`: who may log in, their grants and sessions, and offboarding. */
import { Fault, isFault } from '../../../errors/fault.ts'
import { roleWith } from '../../../value/capabilities.ts'
import { isId, type OperationId, type OperatorId } from '../../../value/ids.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type {
  GrantField,
  OperatorChanged,
  OperatorPage,
  OperatorRecord,
} from '../../../wire/identity/access.ts'
import {
  disableOperator,
  enableOperator,
  listOperatorSessions,
  listOperators,
} from '../../../wire/operations/identity/operators.ts'
import { argument, type CommandSpec, type Context, command } from '../../contexts.ts'
import { readPages } from '../../network/pages.ts'
import { requestCommand } from '../../request-commands.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { timeText } from '../../timestamps.ts'
import { usage } from '../../usage.ts'
import { printable } from '../../visible-text.ts'
import { forget } from '../logout.ts'
import { OPERATION_ID, operationIdOf } from '../operations.ts'
import { createdAtMicros } from '../scopes.ts'
import { scopeText } from './scopes.ts'
import { SESSION_COLUMNS } from './sessions.ts'

export const OPERATOR = argument(
  'OPERATOR',
  'Its opr_ identifier, or its name where no other has it',
)

const list = requestCommand({
  name: 'operators list',
  alias: 'operators',
  summary: 'List the operators of the installation, newest first',
  details: ['Needs operators:manage at the installation. `svc operators` alone does the same.'],
  options: {},
  open: OperatorSession.open,
  progress: 'reading the operators',
  request: readOperators,
  document: (items) => ({ version: 1, items, next: null }) satisfies OperatorPage,
  rows: (operators) => operators,
  columns: {
    OPERATOR: 'operatorId',
    NAME: 'operatorName',
    STATE: ({ disabledAtMicros }) => (disabledAtMicros === null ? 'enabled' : 'disabled'),
    'LAST USED': ({ lastUsedAtMicros }) => timeText(lastUsedAtMicros, 'never'),
    GRANTS: ({ grants }) => grants.map(grantText).join(', ') || '-',
  },
})

const show: CommandSpec = command({
  name: 'operators show',
  summary: 'Show an operator with its grants, linked identities and active sessions',
  details: ['Needs operators:manage at the installation.'],
  positionals: [OPERATOR],
  options: {},
  examples: ['svc operators show ana'],
  async run(context, _, [named]) {
    const { output } = context
    const session = await OperatorSession.open(context)
    const operator = await output.progress('reading the operators', findOperator(session, named!))
    const request = readSessions(session, operator.operatorId)
    const sessions = await output.progress('reading the sessions', request)
    const { operatorId, disabledAtMicros } = operator
    const state = disabledAtMicros === null ? 'enabled' : `disabled ${timeText(disabledAtMicros)}`
    const [created, used] = [operator.createdAtMicros, operator.lastUsedAtMicros]
    await output.result({ version: 1, operator, sessions }, [
      `${output.bold(printable(operator.operatorName))}  ${operatorId}  ${state}`,
      `Created ${timeText(created)}, used ${timeText(used, 'never')}.`,
      ...output.section(operator.grants, {
        SCOPE: ({ scope }) => scopeText(scope),
        ROLE: ({ capabilities }) => roleWith(capabilities) ?? '-',
        SOURCE: 'source',
        CAPABILITIES: ({ capabilities }) => capabilities.join(' '),
      }),
      ...output.section(operator.identities, { PROVIDER: 'providerId', LINKED: 'linkedAtMicros' }),
      ...output.section(sessions, SESSION_COLUMNS),
    ])
  },
})

const OPERATION = { 'operation-id': OPERATION_ID }

const disable: CommandSpec = command({
  name: 'operators disable',
  summary: 'Take all access away from an operator and end its sessions at once',
  details: [
    'Needs operators:manage at the installation. The grants stay for `svc operators enable`, and',
    'the audit stays. Unused invitations of the operator stop working. The last owner is rejected.',
  ],
  positionals: [OPERATOR],
  options: OPERATION,
  examples: ['svc operators disable ana'],
  run: (context, options, [named]) => change(context, disable, named!, options['operation-id']),
})

const enable: CommandSpec = command({
  name: 'operators enable',
  summary: 'Let a disabled operator log in again, with the grants that it had',
  details: [
    'Needs operators:manage at the installation. Its earlier sessions stay ended: it logs in by',
    'its identity provider. Without a linked identity it needs a new invitation.',
  ],
  positionals: [OPERATOR],
  options: OPERATION,
  examples: ['svc operators enable ana'],
  run: (context, options, [named]) => change(context, enable, named!, options['operation-id']),
})

async function change(
  context: Context,
  spec: CommandSpec,
  named: string,
  givenId: string | undefined,
): Promise<void> {
  const { output } = context
  const operationId = operationIdOf(context, spec, givenId)
  const session = await OperatorSession.open(context)
  const operator = await output.progress('reading the operators', findOperator(session, named))
  const { operatorId, operatorName } = operator
  const verb = spec === disable ? 'disable' : 'enable'
  const request = send(session, { verb, operatorId, operationId })
  const changed = await output.progress(`${verb.slice(0, -1)}ing the operator`, request)
  const isOwn = verb === 'disable' && operatorId === session.profile.operatorId
  if (isOwn) await forget(context, session.profile.sessionId)
  const tail = isOwn ? ' This machine is logged out.' : ''
  await output.result({ ...changed, operatorName }, [
    `${printable(operatorName)} (${operatorId}) is ${verb}d.${tail}`,
  ])
}

/** The Operation ID makes it happen once, however often it is sent. */
async function send(
  session: OperatorSession,
  {
    verb,
    operatorId,
    operationId,
  }: {
    readonly verb: 'disable' | 'enable'
    readonly operatorId: OperatorId
    readonly operationId: OperationId
  },
): Promise<OperatorChanged> {
  try {
    return await session.call(verb === 'disable' ? disableOperator : enableOperator, {
      params: { operatorId },
      operationId,
      body: { changedAtMicros: createdAtMicros(operationId) },
    })
  } catch (error) {
    if (!isFault(error, 'PLATFORM_CONFLICT')) throw error
    const detail =
      'Either it is the last owner, and another operator must become one first, or the Operation ' +
      'ID belongs to another change.'
    throw new Fault('PLATFORM_CONFLICT', { detail, cause: error.cause })
  }
}

/** Throws PLATFORM_NOT_FOUND, CLIENT_USAGE for a name that several operators have. */
export async function findOperator(
  session: OperatorSession,
  named: string,
): Promise<OperatorRecord> {
  const name = named.normalize('NFC')
  const found = (await readOperators(session)).filter(({ operatorId, operatorName }) =>
    isId('opr', named) ? operatorId === named : operatorName === name,
  )
  const [operator, second] = found
  if (operator === undefined) {
    const detail = `There is no operator ${named}; \`svc operators list\` shows them.`
    throw new Fault('PLATFORM_NOT_FOUND', { detail })
  }
  if (second === undefined) return operator
  const ids = found.map(({ operatorId }) => operatorId).join(', ')
  throw usage(`${found.length} operators are named ${named}: give one of ${ids}.`)
}

function readOperators(session: OperatorSession): Promise<OperatorRecord[]> {
  return readPages<OperatorRecord>((after) =>
    session.call(listOperators, { query: { after: after ?? undefined } }),
  )
}

/** Reads the newest 1,000, far more than a person looks at. */
async function readSessions(session: OperatorSession, operatorId: OperatorId) {
  const { sessions } = await session.call(listOperatorSessions, {
    params: { operatorId },
    query: { limit: PAGE_MAX },
  })
  return sessions
}

export function grantText(grant: GrantField): string {
  return `${roleWith(grant.capabilities) ?? 'custom'}@${scopeText(grant.scope)}`
}

export const operatorCommands: readonly CommandSpec[] = [list, show, disable, enable]
