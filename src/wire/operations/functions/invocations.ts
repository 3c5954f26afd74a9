/** Functions that operators run, without an application identity. */
import { InvocationRequest, OperatorInvoked } from '../../invocations.ts'
import { environmentOperation } from '../operation.ts'

/**
 * Bytes of the body, as of a call of an application.
 * @limit Requests: the body of a call by an operator
 */
export const INVOCATION_BYTES_MAX = 2 * 1024 * 1024
/** Bytes of a result of 8 MiB in the tagged form. */
const RESULT_BYTES_MAX = 32 * 1024 * 1024
/** Milliseconds: the ten minutes of an Action, and the time of the network. */
const ACTION_MS = 630_000

/** Not repeatable: an Action may have had effects. A Mutation is repeated by its operation ID. */
export const invokeFunction = environmentOperation({
  method: 'POST',
  path: '/invocations',
  name: 'invokeFunction',
  summary: 'Runs a Function as the operator. An internal Function requires data:write too.',
  capability: 'functions:invoke',
  body: { schema: InvocationRequest, bytesMax: INVOCATION_BYTES_MAX },
  replay: 'unsafe',
  replies: { 200: OperatorInvoked },
  errors: [
    'ARGUMENTS_INVALID',
    'AUTH_POLICY_DENIED',
    'BUSY',
    'DEADLINE_EXCEEDED',
    'FUNCTION_FAILED',
    'FUNCTION_NOT_FOUND',
    'INTERNAL',
    'LIMIT_EXCEEDED',
    'OPERATION_REUSED',
    'RELEASE_RETIRED',
    'REQUEST_INVALID',
    'RESULT_INVALID',
    'RESULT_UNCERTAIN',
    'TARGET_DENIED',
    'TARGET_NOT_FOUND',
    'UNAVAILABLE',
  ],
  declaredErrors: true,
  deadlineMs: ACTION_MS,
  responseBytesMax: RESULT_BYTES_MAX,
})

export const invocationOperations = { invokeFunction }
