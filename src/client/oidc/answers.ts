/**
 * What the provider sent to the loopback address with our state: the code, or why there is none.
 * The state itself is checked by callbacks.ts.
 */
import { Fault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'

/** RFC 6749, appendix A: printable ASCII. */
const CODE = /^[\x20-\x7e]{1,8192}$/
/** RFC 6749, 4.1.2.1; a bound keeps the terminal of whoever reads it readable. */
export const ERROR_CODE = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/

export interface ExpectedIssuer {
  readonly issuer: string
  /** The provider's metadata promise `iss` in every answer (RFC 9207). */
  readonly required: boolean
}

/** Faults: CLIENT_BROWSER_LOGIN_FAILED. */
export function codeOf(parameters: URLSearchParams, expected: ExpectedIssuer): Secret {
  const names = [...parameters.keys()]
  // RFC 6749, 3.1: a parameter stands once; of two readers each could take another one.
  if (new Set(names).size !== names.length) throw failed('A parameter of the answer stands twice.')
  const [code, error, issuer] = ['code', 'error', 'iss'].map((name) => parameters.get(name))
  if (issuer == null) {
    if (expected.required) throw failed('The answer does not name its issuer.')
  } else if (issuer !== expected.issuer) {
    // Compared as text, without any normalisation (RFC 9207, 2.4).
    throw failed('The answer is of another issuer.')
  }
  if (error != null && code != null) throw failed('The answer is a code and an error at once.')
  if (error != null) {
    throw failed(`The provider answered ${ERROR_CODE.test(error) ? error : 'an unknown error'}.`)
  }
  if (code == null || !CODE.test(code)) throw failed('The answer has no code.')
  return new Secret(code)
}

export function failed(detail: string): Fault {
  return new Fault('CLIENT_BROWSER_LOGIN_FAILED', { detail })
}
