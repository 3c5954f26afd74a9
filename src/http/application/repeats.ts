/**
 * The operation of a Mutation, which makes it repeatable: whom it belongs to, and the recorded
 * outcome of an exact repeat.
 */
import type { MutationOutcome } from '../../engine/invocations/mutations.ts'
import type { MutationRequest, QueryRequest } from '../../engine/invocations/requests.ts'
import { type Fault, isFault } from '../../errors/fault.ts'
import { mayInvoke } from './call-admission.ts'
import type { MutationEnvelope } from './call-envelopes.ts'
import type { Call } from './calls.ts'
import { operationCaller, possibleCallers } from './operation-callers.ts'

/** Rejections that depend on the current Release; the original call may have met another one. */
const RELEASE_REJECTIONS = [
  'RELEASE_RETIRED',
  'FUNCTION_NOT_FOUND',
  'AUTH_POLICY_DENIED',
  'FUNCTIONAL_TOKEN_REQUIRED',
  'ARGUMENTS_INVALID',
  'OPERATION_REUSED',
] as const

/** Returns the admitted call as the operation that its envelope names. */
export function operationOf(
  { caller }: Call,
  { operationId, target }: MutationEnvelope,
  request: QueryRequest,
): MutationRequest {
  const owner = operationCaller(caller, request.definition.auth, request.principal)
  return { ...request, operationId, target, caller: owner }
}

/**
 * Returns the recorded outcome for an exact repeat, even if the current Release rejects the call. A
 * client that receives a rejection would otherwise repeat its write. Throws `rejection` where it
 * does not depend on the Release, where no such record exists, and where the credential may not
 * call Mutations.
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

/** Finds the record. OPERATION_REUSED replaces the rejection of a retired Release only. */
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
