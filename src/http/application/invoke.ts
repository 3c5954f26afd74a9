/**
 * Handlers of POST /v1/query, /v1/mutation and /v1/action. The steps are key, rate, envelope,
 * target, Function, policy, functional identity, arguments, then the engine. The Application Key
 * and the functional identity are independent.
 */
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { QueryOutcome } from '../../engine/invocations/queries.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { admitCall } from './call-admission.ts'
import { readAction, readMutation } from './call-envelopes.ts'
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
  const request = admitCall(call, gateway.envelopes.read(bytes), 'query')
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
  const sequence = outcome.snapshotSequence === null ? 'null' : `"${outcome.snapshotSequence}"`
  const metadata = `"kind":"query","snapshotSequence":${sequence}`
  const { releaseId } = request.release
  const response = successResponse(request, releaseId, outcome.resultText, metadata)
  if (outcome.hasGrant || request.definition.compress === false) return response
  return { ...response, compressible: { forms: outcome.compressed } }
}

export async function invokeMutation(call: Call): Promise<CallResponse> {
  const envelope = readMutation(call.bytes)
  call.operationId = envelope.operationId
  try {
    const request = toMutationRequest(call, envelope, await admitCall(call, envelope, 'mutation'))
    return mutationResponse(request, await call.gateway.engine.mutation(request))
  } catch (error) {
    const outcome = await recordedOutcome(call, envelope, error)
    const { gateway, incoming } = call
    const invocationId = incoming.invocationId ?? gateway.system.ids.make('ivc')
    return mutationResponse({ context: { requestId: incoming.requestId, invocationId } }, outcome)
  }
}

function mutationResponse(request: WithContext, outcome: MutationOutcome): CallResponse {
  const sequence = outcome.commitSequence === null ? 'null' : `"${outcome.commitSequence}"`
  const counts = `"replayed":${outcome.replayed},"attempts":${outcome.attempts}`
  const metadata = `"kind":"mutation","commitSequence":${sequence},${counts}`
  return successResponse(request, outcome.releaseId, outcome.resultText, metadata)
}

export async function invokeAction(call: Call): Promise<CallResponse> {
  const request = await admitCall(call, readAction(call.bytes), 'action')
  const { binding } = call.incoming
  const { signal } = call.incoming.request
  binding.takeTime?.()
  try {
    const outcome = await call.gateway.engine.action({ ...request, signal })
    const { schedulesCreated } = outcome
    const metadata = `"kind":"action","schedulesCreated":"${schedulesCreated}"`
    return successResponse(request, request.release.releaseId, outcome.resultText, metadata)
  } finally {
    binding.returnTime?.()
  }
}

type WithContext = Pick<QueryRequest, 'context'>

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
