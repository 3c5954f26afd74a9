/**
 * `svc call`: calls a Query, Mutation or Action with plain JSON. The validators of the Function
 * come from the catalog of the target; the call uses the application API and an Application Key.
 */

import { Fault, isFault } from '../../errors/fault.ts'
import { isId, type OperationId } from '../../value/ids.ts'
import type { FunctionKind } from '../../value/manifest.ts'
import type { Secret } from '../../value/secret.ts'
import { shellQuoted } from '../../value/shell/shell-words.ts'
import type { Json } from '../../value/strict-json.ts'
import { encodeTagged } from '../../value/tagged.ts'
import type { Value } from '../../value/values.ts'
import { Invoked, type OperatorInvoked } from '../../wire/invocations.ts'
import { invokeFunction } from '../../wire/operations/functions/invocations.ts'
import { readStatus } from '../../wire/operations/status.ts'
import { argument, type CommandSpec, type Context, command, flag, option } from '../contexts.ts'
import { explained, explanation, explanationOf } from '../explanations.ts'
import { isUnsent, send } from '../requests/requests.ts'
import { openRemote, type Remote } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { printableJson } from '../visible-text.ts'
import {
  ARGUMENTS_POSITIONAL,
  type CallerOptions,
  callerFrom,
  FUNCTION_OPTIONS,
  findFunction,
  printedResult,
  readArguments,
  toValues,
} from './functions/function-calls.ts'
import { targetOf } from './targets.ts'

/** Milliseconds: the ten minutes of an Action, and the time of the network. */
const ACTION_MS = 630_000
/** Bytes of a result of 8 MiB in the tagged form. */
const RESULT_BYTES_MAX = 32 * 1024 * 1024

export const callCommand: CommandSpec = command({
  name: 'call',
  summary: 'Call a Query, a Mutation or an Action',
  details: [
    'Arguments are plain JSON: an int64 is an integer or a string of digits, bytes are base64url,',
    'a timestamp is ISO 8601 or a string of microseconds, an ID is a string. Results are printed',
    'the same way. A Mutation gets an operation ID, shown on stderr; the same call with the same',
    'operation ID takes effect once. An Action may take 10 minutes and is never sent again by svc.',
    'With --operator the Function has no application identity, may be internal, and is audited.',
    'The operator needs functions:invoke, and for an internal Function data:write.',
  ],
  positionals: [argument('FUNCTION', 'Its name, such as messages.send'), ARGUMENTS_POSITIONAL],
  options: {
    ...FUNCTION_OPTIONS,
    'operation-id': option('opn_ID', 'Operation ID of a Mutation; a new one by default'),
    tagged: flag('Arguments and result are tagged JSON, which keeps every type exact'),
    operator: flag('Run it as the operator, by the management address and without a key'),
  },
  examples: [
    'svc call messages.list \'{"channel":"channels_..."}\' --dev',
    'svc call messages.send \'{"channel":"channels_...","author":"ana","body":"hi"}\' \\',
    '  --url https://app.example.com --key-env APP_KEY --target channel:production',
    'svc call counters.repair --operator --target channel:production',
  ],
  async run(context, options, [name = '', given]) {
    const operationId = options['operation-id']
    if (operationId !== undefined && !isId('opn', operationId)) {
      throw usage('--operation-id needs an opn_ identifier.', callCommand)
    }
    const json = await readArguments(context, callCommand, given, options['args-file'])
    const remote = await openRemote(context, options)
    if (options.operator) return callAsOperator(context, remote, { ...options, name, json })
    const { keyFor, ...caller } = callerFrom(context, callCommand, options, remote)
    const target = targetOf(remote, options.target, callCommand)
    const declared = await findFunction(context, remote, target, name)
    const { kind } = declared
    if (kind !== 'mutation' && operationId !== undefined) throw notMutation(kind)
    const key = keyFor(declared)
    const input = { ...caller, key, kind, target, name, operationId, logs: logsOf(remote) }
    const values = toValues(json, options.tagged ? null : (declared.arguments as Json))
    const invoked = await invoke(context, input, values).catch(async (error) => {
      throw isFault(error, 'UNAVAILABLE') ? await whyUnavailable(remote, error) : error
    })
    await report(context, invoked, options.tagged)
  },
})

interface OperatorCall extends Pick<CallerOptions, 'url' | 'key-env' | 'token-env'> {
  readonly name: string
  readonly json: Json
  readonly target: string | undefined
  readonly 'operation-id': string | undefined
  readonly tagged: boolean
}

async function callAsOperator(
  context: Context,
  remote: Remote,
  { name, json, tagged, ...options }: OperatorCall,
): Promise<void> {
  const { url, 'key-env': key, 'token-env': token } = options
  if ([url, key, token].some((given) => given !== undefined)) {
    throw usage('--operator takes no --url, --key-env and --token-env.', callCommand)
  }
  const target = targetOf(remote, options.target, callCommand)
  const declared = await findFunction(context, remote, target, name, 'any')
  const { kind } = declared
  const isMutation = kind === 'mutation'
  const given = options['operation-id']
  if (!isMutation && given !== undefined) throw notMutation(kind)
  const values = toValues(json, tagged ? null : (declared.arguments as Json))
  const operationId = (given ?? context.environment.system.ids.make('opn')) as OperationId
  if (isMutation) await context.output.warn(`operation ${operationId}`)
  const body = {
    target,
    function: name,
    arguments: JSON.parse(encodeTagged(values)) as Json,
    ...(isMutation && { operationId }),
  }
  const request = remote.call(invokeFunction, { body, subjects: { target } }).catch((error) => {
    if (isFault(error, 'AUTH_POLICY_DENIED')) throw explained(error, { next: NEEDS_IDENTITY })
    throw withNextStep(error, { kind, logs: logsOf(remote) }, operationId)
  })
  const invoked = await context.output.progress(`calling ${name}`, request)
  await report(context, invoked, tagged)
}

const NEEDS_IDENTITY =
  'The Function requires an identity, which an operator has not. Call it with --url, --key-env ' +
  'and --token-env.'

function notMutation(kind: FunctionKind): Fault {
  const found = kind === 'query' ? 'a Query' : 'an Action'
  return usage(`--operation-id is for Mutations; this is ${found}.`, callCommand)
}

interface Input {
  readonly origin: string
  readonly key: Secret
  readonly token: Secret | null
  readonly kind: FunctionKind
  readonly target: string
  readonly name: string
  readonly operationId: string | undefined
  /** The command that reads the log of the server. */
  readonly logs: string
}

async function invoke(context: Context, input: Input, values: Value): Promise<Invoked> {
  const { kind, target, name } = input
  const operation = input.operationId ?? context.environment.system.ids.make('opn')
  const envelope = {
    version: 1,
    target,
    function: name,
    arguments: JSON.parse(encodeTagged(values)) as Json,
  }
  const body: Json = kind === 'mutation' ? { ...envelope, operationId: operation } : envelope
  if (kind === 'mutation') await context.output.warn(`operation ${operation}`)
  // The operation ID makes a Mutation safe to repeat; an Action may have had effects.
  const request = send(context, {
    method: 'POST',
    origin: input.origin,
    path: `/v1/${kind}`,
    headers: { 'x-service-key': input.key.reveal() },
    ...(input.token !== null && { bearer: input.token }),
    body,
    reply: Invoked,
    replay: kind === 'action' ? 'unsafe' : 'safe',
    responseBytesMax: RESULT_BYTES_MAX,
    ...(kind === 'action' && { deadlineMs: ACTION_MS }),
  }).catch((error) => {
    throw withNextStep(error, input, operation)
  })
  const invoked = await context.output.progress(`calling ${name}`, request)
  if (invoked.metadata.kind === kind) return invoked
  throw new Fault('CLIENT_RESPONSE_INVALID', {
    detail: 'The response belongs to another kind of call.',
  })
}

/** Says that the Environment is archived, which the application origin tells no caller. */
async function whyUnavailable(remote: Remote, fault: Fault): Promise<Fault> {
  const status = await remote.call(readStatus).catch(() => null)
  if (status?.lifecycle !== 'archived') return fault
  return explained(fault, {
    detail: 'The Environment is archived.',
    next: 'Run `svc environments restore` to serve again.',
  })
}

/** Adds the next step: a Query changes nothing, and a lost Mutation can be repeated safely. */
function withNextStep(
  error: unknown,
  { kind, logs }: Pick<Input, 'kind' | 'logs'>,
  operation: string,
): unknown {
  if (isFault(error, 'AUTH_POLICY_DENIED')) return withRule(error, kind, logs)
  if (isFault(error, ...EXPLAINED_IN_LOG)) return withRecord(error, logs)
  const interrupted = isFault(error, 'CLIENT_CHANGE_INTERRUPTED')
  if (kind === 'query' && interrupted) return new Fault('CLIENT_INTERRUPTED', { cause: error })
  const lost =
    interrupted ||
    isFault(error, 'CLIENT_RESULT_UNCERTAIN') ||
    (isFault(error, 'CLIENT_SERVER_UNREACHABLE') && !isUnsent(error))
  if (kind !== 'mutation' || !lost) return error
  const next = `Repeat the call with --operation-id ${operation}: it takes effect only once.`
  const code = interrupted ? 'CLIENT_CHANGE_INTERRUPTED' : 'CLIENT_RESULT_UNCERTAIN'
  return new Fault(code, { cause: explanation({ next }) })
}

/** Codes whose reason is in the log alone. */
const EXPLAINED_IN_LOG = ['FUNCTION_FAILED', 'RESULT_INVALID', 'LIMIT_EXCEEDED'] as const

function logsOf({ local, directory }: Remote): string {
  return local === null ? 'svc logs' : `svc logs --root ${shellQuoted(directory)}`
}

/** Says where the reason is. */
function withRecord(fault: Fault, logs: string): Fault {
  const { requestId } = explanationOf(fault)
  if (requestId === null) return fault
  return explained(fault, { next: `Run \`${logs} --request ${requestId}\`: it has the reason.` })
}

/** Says where the rule is that rejected the call, and how a key gets a scope. */
function withRule(fault: Fault, kind: FunctionKind, logs: string): Fault {
  const { requestId } = explanationOf(fault)
  const log = requestId === null ? logs : `${logs} --request ${requestId}`
  const next =
    `Run \`${log}\`, which names the rule. Where the key lacks the scope ${kind}, create a ` +
    'Client and a key of it that have the scope: both commands take --scopes.'
  return explained(fault, { next })
}

async function report(
  context: Context,
  invoked: Invoked | OperatorInvoked,
  isTagged: boolean,
): Promise<void> {
  const { requestId, releaseId, metadata } = invoked
  const result = printedResult(invoked.result as Json, isTagged)
  const document = { version: 1, requestId, releaseId, result, metadata: { ...metadata } }
  await context.output.result(document, [printableJson(result)])
}
