/**
 * Functions that operators run. The caller has no application identity: `ctx.auth` is null, and a
 * Function that requires an identity rejects it (contract/management.md, Roles and capabilities).
 */
import type { ActionOutcome } from '../../engine/actions/actions.ts'
import type { DocumentAdministration } from '../../engine/administration/document-administration.ts'
import type { CancellationToken } from '../../engine/calls/outcomes.ts'
import type { CallEngine } from '../../engine/engine.ts'
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { type Actor, requireCapability } from '../../identity/actor.ts'
import type { ConcurrencyLimit } from '../../system/concurrency.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { admit } from '../../value/identities.ts'
import type { InvocationId, OperationId, RequestId } from '../../value/ids.ts'
import { FUNCTION_NAME, type FunctionManifest } from '../../value/manifest.ts'
import { environmentScope } from '../../value/scope.ts'
import type { ValueObject } from '../../value/values.ts'
import type { HeldAudits } from '../audit/held-audits.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { resolveTarget, type TargetPorts } from '../serving/target-resolution.ts'

/** @limit Calls: Functions that operators run at the same time, in an Environment */
export const OPERATOR_INVOCATIONS_MAX = 16

export interface InvocationPorts extends ChangePorts, TargetPorts {
  readonly engine: Pick<CallEngine, 'query' | 'mutation' | 'action' | 'replay'> & {
    readonly administration: Pick<DocumentAdministration, 'isCommitted'>
  }
  readonly heldAudits: HeldAudits
  /** Limits the Functions that operators run, whose bodies and results are in memory. */
  readonly invocations: ConcurrencyLimit
}

export interface InvocationInput {
  readonly target: string
  readonly function: string
  readonly arguments: ValueObject
  /** Null for a new one, where the Function is a Mutation. */
  readonly operationId: OperationId | null
  readonly requestId: RequestId
  readonly trace?: Span | null | undefined
  /** Cancels a Query or an Action when the operator disconnects. */
  readonly signal: CancellationToken
}

interface Ran {
  readonly releaseId: string
  readonly invocationId: InvocationId
}

/** The outcome of a Function, with what its kind adds. */
export type Invoked = Ran &
  (
    | { readonly kind: 'query'; readonly outcome: QueryOutcome }
    | {
        readonly kind: 'mutation'
        readonly outcome: MutationOutcome
        readonly operationId: OperationId
      }
    | { readonly kind: 'action'; readonly outcome: ActionOutcome }
  )

/**
 * Runs a Function of the Release that the target serves. A public one needs no more than the route
 * does; an internal one trusts its callers as it trusts other Functions, so it needs `data:write`
 * too. Throws as a call of an application does, PLATFORM_ACCESS_DENIED, and BUSY beyond
 * OPERATOR_INVOCATIONS_MAX.
 */
export function invokeFunction(
  ports: InvocationPorts,
  actor: Actor,
  input: InvocationInput,
): Promise<Invoked> {
  return ports.invocations.run(async () => {
    const invocationId = ports.system.ids.make('ivc')
    try {
      const request = await admitInvocation(ports, actor, input, invocationId)
      return await run(ports, actor, input, request)
    } catch (error) {
      const recorded = await recordedOutcome(ports, actor, input, error)
      const { releaseId } = recorded
      const operationId = input.operationId!
      return { kind: 'mutation', releaseId, invocationId, outcome: recorded, operationId }
    }
  })
}

type AdmittedRequest = QueryRequest & {
  readonly context: { readonly requestId: RequestId; readonly invocationId: InvocationId }
}

async function admitInvocation(
  ports: InvocationPorts,
  actor: Actor,
  input: InvocationInput,
  invocationId: InvocationId,
): Promise<AdmittedRequest> {
  // An operator stays on one Release of a weighted policy.
  const affinity = () => actor.operatorId
  const caller = { scopes: ['workspace'] as const }
  const release = await resolveTarget(ports, caller, input.target, { affinity })
  const definition = getFunction(release, input.function)
  if (definition.visibility !== 'public') requireInternal(ports, actor)
  if (typeof admit(definition.auth, null) === 'string') {
    const detail = `the Function requires a ${definition.auth} identity, which an operator has not`
    throw new Fault('AUTH_POLICY_DENIED', { detail, violations: [IDENTITY] })
  }
  if (input.operationId !== null && definition.kind !== 'mutation') {
    const rule = `absent: the Function is a ${definition.kind}`
    throw new Fault('REQUEST_INVALID', { violations: [{ path: 'operationId', rule }] })
  }
  const { requestId, trace, signal } = input
  const context = { requestId, invocationId }
  return {
    release,
    definition,
    arguments: input.arguments,
    principal: null,
    context,
    trace,
    signal,
  }
}

const IDENTITY = { path: 'function', rule: 'a Function that requires no application identity' }

function getFunction(release: Release, name: string): FunctionManifest {
  const definition = release.functions.get(name)
  if (definition !== undefined) return definition
  if (FUNCTION_NAME.test(name)) {
    throw new Fault('FUNCTION_NOT_FOUND', { detail: `${release.releaseId} has no ${name}` })
  }
  const violation = { path: 'function', rule: 'the name of a Function' }
  throw new Fault('REQUEST_INVALID', { violations: [violation] })
}

function requireInternal({ root }: RootPort, actor: Actor): void {
  const { projectId, environmentId } = root.descriptor
  requireCapability(actor, 'data:write', environmentScope(projectId, environmentId))
}

function run(
  ports: InvocationPorts,
  actor: Actor,
  input: InvocationInput,
  request: AdmittedRequest,
): Promise<Invoked> {
  const { releaseId } = request.release
  const { invocationId } = request.context
  const ran = { releaseId, invocationId }
  const { kind } = request.definition
  switch (kind) {
    case 'query':
      return audited(ports, actor, input, async () => {
        return { ...ran, kind, outcome: await ports.engine.query(request) }
      })
    case 'action':
      // What it does elsewhere cannot be undone, so a record is durable before it begins.
      record(ports, actor, input, { operation: 'product.function.start', outcome: 'succeeded' })
      return audited(ports, actor, input, async () => {
        return { ...ran, kind, outcome: await ports.engine.action(request) }
      })
    case 'mutation':
      return mutate(ports, actor, input, request)
  }
}

/** Runs a Mutation. Its audit record is stored before, and held until the outcome is known. */
async function mutate(
  ports: InvocationPorts,
  actor: Actor,
  input: InvocationInput,
  request: AdmittedRequest,
): Promise<Invoked> {
  const { engine, heldAudits, system } = ports
  const { target } = input
  const operationId = input.operationId ?? system.ids.make('opn')
  const caller = callerOf(actor)
  const perform = () => engine.mutation({ ...request, operationId, target, caller })
  const isRepeat =
    input.operationId !== null && (await engine.administration.isCommitted(operationId))
  const outcome = isRepeat
    ? await perform()
    : await heldAudits
        .hold(actor, { ...changeOf(input), operationId }, { perform, isUndone: isKnown })
        .catch((error) => {
          if (isKnown(error)) recordFailure(ports, actor, { ...input, operationId })
          throw error
        })
  if (isRepeat) heldAudits.deliverHeld(operationId)
  const { releaseId } = outcome
  const { invocationId } = request.context
  return { kind: 'mutation', releaseId, invocationId, operationId, outcome }
}

/** Returns whether a failed Mutation certainly wrote nothing. */
function isKnown(error: unknown): boolean {
  return isFault(error) && !isFault(error, 'RESULT_UNCERTAIN', 'UNAVAILABLE', 'INTERNAL')
}

/** The caller that the operations of an operator belong to. No Client has such an ID. */
function callerOf({ operatorId }: Actor): string {
  return operatorId
}

/** Rejections that depend on the Release, while the original call may have run on another one. */
const RELEASE_REJECTIONS = [
  'RELEASE_RETIRED',
  'FUNCTION_NOT_FOUND',
  'AUTH_POLICY_DENIED',
  'ARGUMENTS_INVALID',
  'OPERATION_REUSED',
] as const

/** Returns the outcome of an exact repeat that the current Release rejects. Throws `rejection`. */
async function recordedOutcome(
  { engine }: InvocationPorts,
  actor: Actor,
  { operationId, ...input }: InvocationInput,
  rejection: unknown,
): Promise<MutationOutcome> {
  if (operationId === null || !isFault(rejection, ...RELEASE_REJECTIONS)) throw rejection
  const callers = async function* () {
    yield callerOf(actor)
  }
  try {
    const outcome = await engine.replay({ ...input, operationId }, callers())
    if (outcome !== null) return outcome
  } catch (error) {
    if (!isFault(error, 'OPERATION_REUSED') || rejection.code === 'RELEASE_RETIRED') throw error
  }
  throw rejection
}

/** Runs a Query or an Action, and records its outcome. */
async function audited<T>(
  ports: InvocationPorts,
  actor: Actor,
  input: InvocationInput,
  perform: () => Promise<T>,
): Promise<T> {
  try {
    const result = await perform()
    record(ports, actor, input, { operation: 'product.function.invoke', outcome: 'succeeded' })
    return result
  } catch (error) {
    recordFailure(ports, actor, input)
    throw error
  }
}

type Recorded = Pick<InvocationInput, 'target' | 'function' | 'requestId' | 'operationId'>

function recordFailure(ports: InvocationPorts, actor: Actor, input: Recorded): void {
  record(ports, actor, input, { operation: 'product.function.invoke', outcome: 'failed' })
}

function record(
  { root, audit }: InvocationPorts,
  actor: Actor,
  input: Recorded,
  kind: {
    readonly operation: `product.function.${string}`
    readonly outcome: 'succeeded' | 'failed'
  },
): void {
  const { operationId } = input
  const change = { ...changeOf(input), ...kind, ...(operationId !== null && { operationId }) }
  root.control.transaction((tx) => audit.append(tx, actor, change))
  audit.deliver()
}

/** Characters of the subject of an audit record. */
const SUBJECT_CHARACTERS_MAX = 512

/** The record names Function and target, never an argument. */
function changeOf({ target, function: name, requestId }: Omit<Recorded, 'operationId'>) {
  const operation = 'product.function.invoke' as const
  return { operation, subject: `${name} ${target}`.slice(0, SUBJECT_CHARACTERS_MAX), requestId }
}
