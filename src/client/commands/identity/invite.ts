/**
 * `svc invite`: issues a delegated invitation. Only the first response carries the code, so a lost
 * response is reconciled by its Operation ID (contract/management.md, States of an invitation
 * operation): if nothing is committed, the same bytes are sent again; if the invitation is
 * committed, its code is lost.
 */
import { Fault, isFault } from '../../../errors/fault.ts'
import { ROLES, type Role } from '../../../value/capabilities.ts'
import type { OperationId } from '../../../value/ids.ts'
import { isName } from '../../../value/names.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import type { Scope } from '../../../value/scope.ts'
import type { InvitationIssued, InvitationOperation } from '../../../wire/identity/access.ts'
import { readInvitationOperation } from '../../../wire/operations/identity/invitation-operations.ts'
import { issueInvitation } from '../../../wire/operations/identity/invitations.ts'
import {
  type CommandSpec,
  type Context,
  choice,
  command,
  option,
  requiredChoice,
} from '../../contexts.ts'
import { type Explanation, explanation, explanationOf } from '../../explanations.ts'
import { isLoopback } from '../../origins.ts'
import { resolvePath } from '../../roots/roots.ts'
import { withSecretFile } from '../../secret-files.ts'
import { OperatorSession } from '../../sessions/sessions.ts'
import { usage } from '../../usage.ts'
import { printable } from '../../visible-text.ts'
import { OPERATION_ID, operationIdOf } from '../operations.ts'
import { SCOPE_KINDS, SCOPE_OPTIONS, type ScopeKind, scopeOf, scopeText } from './scopes.ts'

const ATTEMPTS_MAX = 3

export const inviteCommand: CommandSpec = command({
  name: 'invite',
  summary: 'Issue an invitation for a new operator, a person or a workload',
  details: [
    'The code works once, within 30 minutes, and is printed once; with --code-out it is written to',
    'a new file (0600) instead. An operator can only delegate capabilities that it has itself at',
    'the scope. The Operation ID is shown on stderr first. A lost response is reconciled with it:',
    'if the invitation exists without its code, the command ends with 9 and names what to revoke.',
    'A workload, such as a CI job, needs no code: its first login within the 30 minutes consumes',
    'the invitation that names it. Its subject is stored as a keyed digest alone.',
  ],
  options: {
    'operator-name': option('NAME', 'Name of the new operator; for a workload it may be left out'),
    role: requiredChoice('ROLE', ROLES, ROLES.join(', ')),
    scope: choice(
      'SCOPE',
      SCOPE_KINDS,
      'installation, project or environment, as for a workload by default',
    ),
    ...SCOPE_OPTIONS,
    'operation-id': OPERATION_ID,
    'code-out': option('FILE', 'Write the code to this new file instead of printing it'),
    workload: option('PROVIDER', 'Invite a job: the ID of the workload provider of the server'),
    subject: option('SUBJECT', 'With --workload: the sub claim of its tokens'),
  },
  examples: [
    'svc invite --operator-name ana --role developer --scope environment --root .',
    'svc invite --workload github --subject repo:acme/app:environment:production --role developer',
  ],
  async run(context, options) {
    const workload = workloadOf(options.workload, options.subject, options['code-out'])
    const operatorName = nameOf(options['operator-name'], workload)
    const { role } = options
    const operationId = operationIdOf(context, inviteCommand, options['operation-id'])
    const codeOut = options['code-out']
    const file = codeOut === undefined ? null : resolvePath(context.environment, codeOut)
    const scope = await scopeOf(context, inviteCommand, {
      kind: scopeKindOf(options.scope, workload),
      projectId: options['project-id'],
      environmentId: options['environment-id'],
      root: options.root,
    })
    const session = await OperatorSession.open(context)
    const loginUrl = session.profile.managementOrigin
    // Printed before the request, so that the issuance can always be found.
    await context.output.warn(`operation ${operationId}`)
    const request = { operatorName, role, scope }
    if (workload !== null) {
      return inviteWorkload(context, session, operationId, { ...request, workload })
    }
    const issuance = (): Promise<Delivered> =>
      context.output.progress(
        'issuing the invitation',
        issue(session, operationId, request, delivered),
      )
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

function workloadOf(
  providerId: string | undefined,
  subject: string | undefined,
  codeOut: string | undefined,
): Workload | null {
  if (providerId === undefined && subject === undefined) return null
  if (providerId === undefined || subject === undefined) {
    throw usage('--workload and --subject go together.', inviteCommand)
  }
  if (codeOut !== undefined) throw usage('--code-out: a workload needs no code.', inviteCommand)
  return { providerId, subject }
}

/** A workload without a name has that of its provider: its subject is kept nowhere in the clear. */
function nameOf(text: string | undefined, workload: Workload | null): string {
  const given = text ?? (workload === null ? undefined : `workload of ${workload.providerId}`)
  if (given === undefined) throw usage('--operator-name is required.', inviteCommand)
  const name = given.normalize('NFC')
  if (isName(name)) return name
  throw usage('--operator-name needs 1 to 128 printable characters.', inviteCommand)
}

function scopeKindOf(kind: ScopeKind | undefined, workload: Workload | null): ScopeKind {
  if (kind !== undefined) return kind
  if (workload !== null) return 'environment'
  throw usage('--scope is required.', inviteCommand)
}

interface Workload {
  readonly providerId: string
  readonly subject: string
}

interface Request {
  readonly operatorName: string
  readonly role: Role
  readonly scope: Scope
  readonly workload?: Workload
}

type Delivered = InvitationIssued & { readonly code: string }

function delivered(issued: InvitationIssued | InvitationOperation): Delivered {
  if (!('code' in issued) || issued.code === undefined) throw undelivered(issued)
  return { ...issued, code: issued.code }
}

/** Issues an invitation that has no code to lose: a lost response is looked up. */
async function inviteWorkload(
  context: Context,
  session: OperatorSession,
  operationId: OperationId,
  request: Request & { readonly workload: Workload },
): Promise<void> {
  const { output } = context
  const issuance = issue(session, operationId, request, (issued) => issued)
  const issued = await output.progress('issuing the invitation', issuance)
  const { invitationId, operatorName, role, scope, expiresAtMicros } = issued
  await output.result(issued, [
    `Invited ${printable(operatorName)} as ${role} at ${scopeText(scope)}: ${invitationId}.`,
    `The first login of ${printable(request.workload.subject)} consumes the invitation, until ` +
      `${formatTimestamp(BigInt(expiresAtMicros))}; no code is needed.`,
    `The job runs: svc login --url ${session.profile.authenticationOrigin} --oidc-token-env VAR`,
  ])
}

/**
 * Issues the invitation; `accept` reads the response, or the result of a look-up after a lost one.
 * Throws CLIENT_CHANGE_INTERRUPTED, PLATFORM_IDENTITY_RESULT_UNCERTAIN, and what `accept` throws.
 */
async function issue<T>(
  session: OperatorSession,
  operationId: OperationId,
  request: Request,
  accept: (issued: InvitationIssued | InvitationOperation) => T,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return accept(await sendIssuance(session, operationId, request))
    } catch (error) {
      if (isFault(error, 'CLIENT_CHANGE_INTERRUPTED')) throw interrupted(operationId)
      if (!isUncertain(error)) throw error
      const committed = await lookUp(session, operationId)
      if (committed !== null) return accept(committed)
      // The Operation ID makes a repeat safe, even while the first request is in flight.
      if (attempt === ATTEMPTS_MAX) throw uncertain(operationId, explanationOf(error))
    }
  }
}

function sendIssuance(
  session: OperatorSession,
  operationId: OperationId,
  request: Request,
): Promise<InvitationIssued> {
  return session.call(issueInvitation, {
    operationId,
    body: request,
    subjects: { scope: scopeText(request.scope) },
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
    return await session.call(readInvitationOperation, { params: { operationId } })
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
