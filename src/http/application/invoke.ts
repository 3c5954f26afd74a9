/**
 * Handlers of POST /v1/query, /v1/mutation and /v1/action. The steps are key, rate, envelope,
 * target, Function, policy, functional identity, arguments, then the engine. The Application Key
 * and the functional identity are independent.
 */
import type { ActionOutcome } from '../../engine/actions/actions.ts'
import type { InvocationContext } from '../../engine/invocations/invocation.ts'
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { admitCall } from './call-admission.ts'
import { type MutationEnvelope, readAction, readMutation, readQuery } from './call-envelopes.ts'
import type { Call, CallResponse } from './calls.ts'
import type { Gateway } from './gateway.ts'
import { recordedOutcome, toMutationRequest } from './recorded-outcomes.ts'

/**
 * Invokes a Query. Returns without a promise where the result is cached, since awaiting one would
 * add a fifth to its time. The rare asynchronous paths are separate functions, since a closure
 * would cost every call.
 */
export function invokeQuery(call: Call): MaybePromise<CallResponse> {
  const { gateway, bytes } = call
  const request = admitCall(call, readQuery(gateway.parsedQueries, bytes), 'query')
  return request instanceof Promise ? queryWhenAdmitted(gateway, request) : query(gateway, request)
}

async function queryWhenAdmitted(
  gateway: Gateway,
  request: Promise<QueryRequest>,
): Promise<CallResponse> {
  return query(gateway, await request)
}

function query({ engine }: Gateway, request: QueryRequest): MaybePromise<CallResponse> {
  const outcome = engine.query(request)
  return outcome instanceof Promise
    ? queryResponseLater(request, outcome)
    : queryResponse(request, outcome)
}

async function queryResponseLater(
  request: QueryRequest,
  outcome: Promise<QueryOutcome>,
): Promise<CallResponse> {
  return queryResponse(request, await outcome)
}

function queryResponse(request: QueryRequest, outcome: QueryOutcome): CallResponse {
  const { releaseId } = request.release
  const metadata = queryMetadata(outcome)
  const response = successResponse(request, releaseId, outcome.resultText, metadata)
  if (!isCompressible(request, outcome)) return response
  return { ...response, compressible: { forms: outcome.compressed } }
}

/** Returns whether a response with the result may be compressed. Only those of Queries may. */
export function isCompressible({ definition }: QueryRequest, { hasGrant }: QueryOutcome): boolean {
  return !hasGrant && definition.compress !== false
}

export function queryMetadata({ snapshotSequence }: QueryOutcome): string {
  const sequence = snapshotSequence === null ? 'null' : `"${snapshotSequence}"`
  return `"kind":"query","snapshotSequence":${sequence}`
}

export async function invokeMutation(call: Call): Promise<CallResponse> {
  const envelope = readMutation(call.bytes)
  call.operationId = envelope.operationId
  const outcome = await runMutation(call, envelope, () => admitCall(call, envelope, 'mutation'))
  const { releaseId, resultText } = outcome
  return successResponse(contextOf(call), releaseId, resultText, mutationMetadata(outcome))
}

/** Runs the admitted Mutation, or returns the recorded outcome of an exact repeat. */
export async function runMutation(
  call: Call,
  envelope: MutationEnvelope,
  admit: () => MaybePromise<QueryRequest>,
): Promise<MutationOutcome> {
  try {
    const request = toMutationRequest(call, envelope, await admit())
    return await call.gateway.engine.mutation(request)
  } catch (error) {
    return recordedOutcome(call, envelope, error)
  }
}

/** Returns the IDs of the answered call. A recorded outcome may have no invocation of its own. */
export function contextOf({ gateway, incoming }: Call): WithContext {
  const invocationId = incoming.invocationId ?? gateway.system.ids.make('ivc')
  return { context: { requestId: incoming.requestId, invocationId } }
}

export function mutationMetadata(outcome: MutationOutcome): string {
  const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
  const counts = `"replayed":${outcome.replayed},"attempts":${outcome.attempts}`
  return `"kind":"mutation","commitSequence":${sequence},${counts}`
}

export async function invokeAction(call: Call): Promise<CallResponse> {
  const request = await admitCall(call, readAction(call.bytes), 'action')
  const outcome = await runAction(call, request)
  const { releaseId } = request.release
  return successResponse(request, releaseId, outcome.resultText, actionMetadata(outcome))
}

/** Runs the admitted Action. The connection has no idle timeout meanwhile. */
export async function runAction(call: Call, request: QueryRequest): Promise<ActionOutcome> {
  const { binding } = call.incoming
  const { signal } = call.incoming.request
  binding.takeTime?.()
  try {
    return await call.gateway.engine.action({ ...request, signal })
  } finally {
    binding.returnTime?.()
  }
}

export function actionMetadata({ schedulesCreated }: ActionOutcome): string {
  return `"kind":"action","schedulesCreated":"${schedulesCreated}"`
}

export type WithContext = {
  readonly context: Pick<InvocationContext, 'requestId' | 'invocationId'>
}

function successResponse(
  { context: { requestId, invocationId } }: WithContext,
  releaseId: string,
  result: string,
  metadata: string,
): CallResponse {
  const ids = `"requestId":"${requestId}","releaseId":"${releaseId}"`
  const head = `{"version":1,"status":"ok",${ids},"result":`
  return { releaseId, invocationId, body: [head, result, `,"metadata":{${metadata}}}`] }
}
