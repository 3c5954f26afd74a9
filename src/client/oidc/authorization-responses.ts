/**
 * Validates the authorization response that the provider sent to the loopback address. callbacks.ts
 * has checked the state before.
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
/** Parameters that must not be empty; oauth4webapi treats empty ones as absent. */
const NEVER_EMPTY = ['iss', 'code', 'error']

export interface ExpectedResponse {
  /** Has the issuer, and whether every authorization response carries `iss` (RFC 9207). */
  readonly server: AuthorizationServer
  readonly client: Client
  readonly state: Secret
}

/**
 * Returns the parameters in the form that oauth4webapi needs to exchange the code.
 * Throws CLIENT_BROWSER_LOGIN_FAILED.
 */
export function validateResponse(parameters: URLSearchParams, expected: ExpectedResponse) {
  const names = [...parameters.keys()]
  // RFC 6749, 3.1: a parameter occurs once; two readers could each take another occurrence.
  if (new Set(names).size !== names.length)
    throw failed('A parameter of the response occurs twice.')
  const empty = NEVER_EMPTY.find((name) => parameters.get(name) === '')
  if (empty !== undefined) throw failed(`The parameter ${empty} of the response is empty.`)
  if (parameters.has('code') && parameters.has('error')) {
    throw failed('The response has both a code and an error.')
  }
  const { server, client, state } = expected
  const valid = explained(() => validateAuthResponse(server, client, parameters, state.reveal()))
  if (!CODE.test(valid.get('code') ?? '')) throw failed('The response has no code.')
  return valid
}

function explained<T>(validate: () => T): T {
  try {
    return validate()
  } catch (error) {
    if (error instanceof AuthorizationResponseError) {
      throw failed(`The provider reported ${printableCode(error.error) ?? 'an unknown error'}.`)
    }
    const isRejected =
      error instanceof OperationProcessingError || error instanceof UnsupportedOperationError
    if (!isRejected) throw error
    throw failed(`The response of the provider was rejected: ${error.message}.`)
  }
}

/** Returns null for an error code that RFC 6749 does not allow. */
export function printableCode(code: string): string | null {
  return ERROR_CODE.test(code) ? code : null
}

export function failed(detail: string): Fault {
  return new Fault('CLIENT_BROWSER_LOGIN_FAILED', { detail })
}
