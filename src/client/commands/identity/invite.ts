/**
 * `svc invite`: issues a delegated invitation. Only the first response carries the code, so a lost
 * response is reconciled by its Operation ID (Document 1, Invitation operation): if nothing is
 * committed, the same bytes are sent again; if the invitation is committed, its code is lost.
 */
import { Fault, isFault } from '../../../errors/fault.ts'
import { isRole, ROLES, type Role } from '../../../value/capabilities.ts'
import { isId, type OperationId } from '../../../value/ids.ts'
import { isName } from '../../../value/names.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { environmentScope, INSTALLATION, type Scope } from '../../../value/scope.ts'
import { InvitationIssued, type InvitationOperation } from '../../../wire/access.ts'
import { type CommandSpec, type Context, command, option, requiredOption } from '../../contexts.ts'
import { type Explanation, explanation, explanationOf } from '../../explanations.ts'
import { isLoopback } from '../../origins.ts'
import { openRemote } from '../../remotes.ts'
import { resolvePath } from '../../roots.ts'
import { withSecretFile } from '../../secret-files.ts'
import { OperatorSession } from '../../sessions.ts'
import { usage } from '../../usage.ts'
import { printable } from '../../visible-text.ts'
import { readInvitation } from './invitations.ts'
import { scopeText } from './scopes.ts'

const ATTEMPTS_MAX = 3

export const inviteCommand: CommandSpec = command({
  name: 'invite',
  summary: 'Issue an invitation code for a new operator',
  details: [
    'The code works once, within 30 minutes, and is printed once; with --code-out it is written to',
    'a new file (0600) instead. An operator can only delegate capabilities that it has itself at',
    'the scope. The Operation ID is shown on stderr first. A lost response is reconciled with it:',
    'if the invitation exists without its code, the command ends with 9 and names what to revoke.',
  ],
  options: {
    'operator-name': requiredOption('NAME', 'Name of the new operator'),
    role: requiredOption('ROLE', ROLES.join(', ')),
    scope: requiredOption('SCOPE', 'installation, project or environment'),
    'project-id': option('prj_ID', 'Project; by default the one of the linked root'),
    'environment-id': option('env_ID', 'Environment; by default the one of the linked root'),
    root: option('DIR', 'The linked root; by default the working directory'),
    'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
    'code-out': option('FILE', 'Write the code to this new file instead of printing it'),
  },
  examples: ['svc invite --operator-name ana --role developer --scope environment --root .'],
  async run(context, options) {
    const operatorName = nameOf(options['operator-name'])
    const role = roleOf(options.role)
    const operationId = options['operation-id'] ?? context.environment.system.ids.make('opn')
    if (!isId('opn', operationId))
      throw usage('--operation-id needs an opn_ identifier.', inviteCommand)
    const codeOut = options['code-out']
    const file = codeOut === undefined ? null : resolvePath(context.environment, codeOut)
    const scope = await scopeOf(context, {
      kind: options.scope,
      projectId: options['project-id'],
      environmentId: options['environment-id'],
      root: options.root,
    })
    const session = await OperatorSession.open(context)
    const loginUrl = session.profile.managementOrigin
    // Printed before the request, so that the issuance can always be found.
    await context.output.warn(`operation ${operationId}`)
    const request = { operatorName, role, scope }
    const issuance = (): Promise<Delivered> =>
      context.output.progress('issuing the invitation', issue(session, operationId, request))
    const issued = await withSecretFile(file, issuance, ({ code }) => code)
    const code = file === null ? issued.code : null
    const document = { ...issued, code, codeFile: file, loginUrl }
    try {
      await context.output.result(document, humanResult(issued, file, loginUrl))
      if (isLoopback(loginUrl)) await context.output.note(LOOPBACK_REMARK)
    } catch (error) {
      if (file !== null || !isFault(error, 'CLIENT_FILE_FAILED')) throw error
      throw undelivered(issued)
    }
  },
})

function nameOf(text: string): string {
  const name = text.normalize('NFC')
  if (isName(name)) return name
  throw usage('--operator-name needs 1 to 128 printable characters.', inviteCommand)
}

function roleOf(text: string): Role {
  if (isRole(text)) return text
  throw usage(`--role must be one of ${ROLES.join(', ')}.`, inviteCommand)
}

interface ScopeOptions {
  readonly kind: string
  readonly projectId: string | undefined
  readonly environmentId: string | undefined
  readonly root: string | undefined
}

/** Takes all identifiers from the options or all from the root; a mix could name another scope. */
async function scopeOf(
  context: Context,
  { kind, projectId, environmentId, root }: ScopeOptions,
): Promise<Scope> {
  if (projectId !== undefined && !isId('prj', projectId)) {
    throw usage('--project-id needs a prj_ identifier.', inviteCommand)
  }
  if (environmentId !== undefined && !isId('env', environmentId)) {
    throw usage('--environment-id needs an env_ identifier.', inviteCommand)
  }
  switch (kind) {
    case 'installation':
      if (projectId === undefined && environmentId === undefined) return INSTALLATION
      throw usage('--scope installation takes no identifier.', inviteCommand)
    case 'project': {
      if (environmentId !== undefined) {
        throw usage('--scope project takes no --environment-id.', inviteCommand)
      }
      const id = projectId ?? (await openRemote(context, root)).descriptor.projectId
      return { kind: 'project', projectId: id, environmentId: null }
    }
    case 'environment': {
      if (projectId !== undefined && environmentId !== undefined) {
        return environmentScope(projectId, environmentId)
      }
      if (projectId !== undefined || environmentId !== undefined) {
        throw usage('Give --project-id and --environment-id together, or neither.', inviteCommand)
      }
      const { descriptor } = await openRemote(context, root)
      return environmentScope(descriptor.projectId, descriptor.environmentId)
    }
    default:
      throw usage('--scope must be installation, project or environment.', inviteCommand)
  }
}

interface Request {
  readonly operatorName: string
  readonly role: Role
  readonly scope: Scope
}

type Delivered = InvitationIssued & { readonly code: string }

/**
 * Issues the invitation. Throws CLIENT_CODE_UNDELIVERED, CLIENT_CHANGE_INTERRUPTED,
 * PLATFORM_IDENTITY_RESULT_UNCERTAIN.
 */
async function issue(
  session: OperatorSession,
  operationId: OperationId,
  request: Request,
): Promise<Delivered> {
  for (let attempt = 1; ; attempt++) {
    try {
      const issued = await sendIssuance(session, operationId, request)
      if (issued.code === undefined) throw undelivered(issued)
      return { ...issued, code: issued.code }
    } catch (error) {
      if (isFault(error, 'CLIENT_CHANGE_INTERRUPTED')) throw interrupted(operationId)
      if (!isUncertain(error)) throw error
      const committed = await lookUp(session, operationId)
      if (committed !== null) throw undelivered(committed)
      // The Operation ID makes a repeat safe, even while the first request is in flight.
      if (attempt === ATTEMPTS_MAX) throw uncertain(operationId, explanationOf(error))
    }
  }
}

function sendIssuance(
  session: OperatorSession,
  operationId: OperationId,
  { operatorName, role, scope }: Request,
): Promise<InvitationIssued> {
  return session.management({
    method: 'POST',
    path: '/v1/access/invitations',
    headers: { 'idempotency-key': operationId },
    subjects: { scope: scopeText(scope) },
    body: { operatorName, role, scope: { ...scope } },
    reply: InvitationIssued,
    replay: 'unsafe',
  })
}

/** Tells whether the code may be lost; an unreadable response may have carried it. */
function isUncertain(error: unknown): error is Fault {
  return isFault(
    error,
    'CLIENT_RESULT_UNCERTAIN',
    'PLATFORM_IDENTITY_RESULT_UNCERTAIN',
    'CLIENT_RESPONSE_INVALID',
  )
}

/** Returns null if the server has committed nothing under the Operation ID. */
async function lookUp(
  session: OperatorSession,
  operationId: OperationId,
): Promise<InvitationOperation | null> {
  try {
    return await readInvitation(session, operationId)
  } catch (error) {
    if (isFault(error, 'PLATFORM_NOT_FOUND')) return null
    if (isFault(error, 'CLIENT_INTERRUPTED')) throw interrupted(operationId)
    if (!isFault(error)) throw error
    throw uncertain(operationId, explanationOf(error))
  }
}

function undelivered({ invitationId }: Pick<InvitationIssued, 'invitationId'>): Fault {
  const next = `Run \`svc invitations revoke ${invitationId}\` and then \`svc invite\` again.`
  return new Fault('CLIENT_CODE_UNDELIVERED', { cause: explanation({ next }) })
}

function interrupted(operationId: OperationId): Fault {
  const next = lookUpAdvice(operationId)
  return new Fault('CLIENT_CHANGE_INTERRUPTED', { cause: explanation({ next }) })
}

function uncertain(operationId: OperationId, { requestId }: Explanation): Fault {
  const next = lookUpAdvice(operationId)
  return new Fault('PLATFORM_IDENTITY_RESULT_UNCERTAIN', {
    cause: explanation({ next, requestId }),
  })
}

function lookUpAdvice(operationId: OperationId): string {
  return `Look it up with \`svc invitations show ${operationId}\`.`
}

const LOOPBACK_REMARK =
  'Only programs on this machine reach that address. Set SERVICE_PUBLIC_MANAGEMENT_URL on the ' +
  'server and log in again to have the public address printed.'

function humanResult(issued: Delivered, file: string | null, loginUrl: string) {
  const { invitationId, operatorName, role, scope, expiresAtMicros } = issued
  return [
    `Invited ${printable(operatorName)} as ${role} at ${scopeText(scope)}: ${invitationId}.`,
    file === null ? issued.code : `The code is in ${file}.`,
    `It works once, until ${formatTimestamp(BigInt(expiresAtMicros))}, and is not shown again.`,
    'The new operator runs this command, which asks for the code:',
    `  svc login --url ${loginUrl}`,
  ]
}
