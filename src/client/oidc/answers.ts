/**
 * Checks the parameters that the provider sent to the loopback address with our state. The state
 * itself is first checked by callbacks.ts, which accepts no request without it.
 */
import {
  AuthorizationResponseError,
  type AuthorizationServer,
  type Client,
  OperationProcessingError,
  UnsupportedOperationError,
  validateAuthResponse,
} from 'oauth4webapi'
import { Fault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'

/** RFC 6749, appendix A: printable ASCII. */
const CODE = /^[\x20-\x7e]{1,8192}$/
/** RFC 6749, 4.1.2.1; the bound keeps the message on a terminal readable. */
const ERROR_CODE = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/
/** Parameters that must not be empty, which oauth4webapi takes for absent. */
const NEVER_EMPTY = ['iss', 'code', 'error']

export interface ExpectedAnswer {
  /** Says whether the metadata of the provider promise `iss` in every answer (RFC 9207). */
  readonly server: AuthorizationServer
  readonly client: Client
  readonly state: Secret
}

/**
 * Returns the parameters as oauth4webapi demands them for the exchange of the code.
 * Faults: CLIENT_BROWSER_LOGIN_FAILED.
 */
export function validateAnswer(parameters: URLSearchParams, expected: ExpectedAnswer) {
  const names = [...parameters.keys()]
  // RFC 6749, 3.1: a parameter occurs once; two readers could each take another occurrence.
  if (new Set(names).size !== names.length) throw failed('A parameter of the answer is repeated.')
  const empty = NEVER_EMPTY.find((name) => parameters.get(name) === '')
  if (empty !== undefined) throw failed(`The parameter ${empty} of the answer is empty.`)
  if (parameters.has('code') && parameters.has('error')) {
    throw failed('The answer is a code and an error at once.')
  }
  const { server, client, state } = expected
  const valid = explained(() => validateAuthResponse(server, client, parameters, state.reveal()))
  if (!CODE.test(valid.get('code') ?? '')) throw failed('The answer has no code.')
  return valid
}

function explained<T>(validate: () => T): T {
  try {
    return validate()
  } catch (error) {
    if (error instanceof AuthorizationResponseError) {
      throw failed(`The provider answered ${printableCode(error.error) ?? 'an unknown error'}.`)
    }
    const isRejected =
      error instanceof OperationProcessingError || error instanceof UnsupportedOperationError
    if (!isRejected) throw error
    throw failed(`The answer of the provider was rejected: ${error.message}.`)
  }
}

/** Returns null for an error code that RFC 6749 does not allow. */
export function printableCode(code: string): string | null {
  return ERROR_CODE.test(code) ? code : null
}

export function failed(detail: string): Fault {
  return new Fault('CLIENT_BROWSER_LOGIN_FAILED', { detail })
}
