/** The operation of a Mutation: its caller, and the recorded outcome of an exact repeat. */
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { MutationRequest, QueryRequest } from '../../engine/invocations/requests.ts'
import { type Fault, isFault } from '../../errors/fault.ts'
import { mayInvoke } from './call-admission.ts'
import type { MutationEnvelope } from './call-envelopes.ts'
import type { Call } from './calls.ts'
import { operationCaller, possibleCallers } from './operation-callers.ts'

/** Rejections that depend on the current Release. The original call may have run on another one. */
const RELEASE_REJECTIONS = [
  'RELEASE_RETIRED',
  'FUNCTION_NOT_FOUND',
  'AUTH_POLICY_DENIED',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'ARGUMENTS_INVALID',
  'OPERATION_REUSED',
] as const

/** Returns the admitted call as the operation that its envelope names. */
export function toMutationRequest(
  { caller }: Call,
  { operationId, target }: MutationEnvelope,
  request: QueryRequest,
): MutationRequest {
  const owner = operationCaller(caller, request.definition.auth, request.principal)
  return { ...request, operationId, target, caller: owner }
}

/**
 * Returns the recorded outcome for an exact repeat, even if the current Release rejects the call. A
 * client that receives a rejection would otherwise repeat its write. Throws `rejection` if it does
 * not depend on the Release, if no such record exists, or if the credential may not call Mutations.
 */
export async function recordedOutcome(
  call: Call,
  envelope: MutationEnvelope,
  rejection: unknown,
): Promise<MutationOutcome> {
  if (!isFault(rejection, ...RELEASE_REJECTIONS)) throw rejection
  if (!mayInvoke(call.caller, 'mutation')) throw rejection
  const outcome = await findRecorded(call, envelope, rejection)
  if (outcome === null) throw rejection
  return outcome
}

/** Finds the record. OPERATION_REUSED replaces only the rejection of a retired Release. */
async function findRecorded(
  call: Call,
  envelope: MutationEnvelope,
  rejection: Fault,
): Promise<MutationOutcome | null> {
  try {
    return await call.gateway.engine.replay(envelope, possibleCallers(call))
  } catch (error) {
    if (isFault(error, 'OPERATION_REUSED') && rejection.code !== 'RELEASE_RETIRED') return null
    throw error
  }
}
