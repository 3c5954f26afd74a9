import { describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { validateAnswer } from './answers.ts'

const ISSUER = 'https://idp.test/tenant'
const STATE = 'a'.repeat(43)

/** The code, or why there is none; the query is read with the right state in front. */
function read(query: string, { promised = true, state = `state=${STATE}&` } = {}): string {
  const server = { issuer: ISSUER, authorization_response_iss_parameter_supported: promised }
  const expected = { server, client: { client_id: 'svc-cli' }, state: new Secret(STATE) }
  try {
    return validateAnswer(new URLSearchParams(state + query), expected).get('code') ?? ''
  } catch (error) {
    if (!isFault(error, 'CLIENT_BROWSER_LOGIN_FAILED')) throw error
    return error.detail ?? ''
  }
}

const rejected = (reason: string): string => `The answer of the provider was rejected: ${reason}.`
const NO_ISSUER = rejected('response parameter "iss" (issuer) missing')
const OTHER_ISSUER = rejected('unexpected "iss" (issuer) response parameter value')
const REPEATED = 'A parameter of the answer is repeated.'

describe('an answer of the provider', () => {
  it('with our issuer gives its code', () => {
    expect(read(`code=abc&iss=${encodeURIComponent(ISSUER)}`)).toBe('abc')
    expect(read('code=a%2Bb+c&session_state=', { promised: false })).toBe('a+b c')
  })

  it.each([
    ['code=abc', NO_ISSUER],
    ['error=access_denied', NO_ISSUER],
    [`code=abc&iss=${ISSUER}/`, OTHER_ISSUER],
    ['code=abc&iss=HTTPS://idp.test/tenant', OTHER_ISSUER],
    ['code=abc&iss=https://idp.test:443/tenant', OTHER_ISSUER],
    ['code=abc&iss=', 'The parameter iss of the answer is empty.'],
    [`code=a&code=b&iss=${ISSUER}`, REPEATED],
    [`code=a&iss=${ISSUER}&iss=https://evil.test`, REPEATED],
    [`error=a&error=b&iss=${ISSUER}`, REPEATED],
    [`code=a&code=a&iss=${ISSUER}`, REPEATED],
    [`code=a&error=access_denied&iss=${ISSUER}`, 'The answer is a code and an error at once.'],
    [`code=a&error=&iss=${ISSUER}`, 'The parameter error of the answer is empty.'],
    [`error=access_denied&iss=${ISSUER}`, 'The provider answered access_denied.'],
    [`error=a%1b[2J&iss=${ISSUER}`, 'The provider answered an unknown error.'],
    [`state=${STATE}&code=a&iss=${ISSUER}`, REPEATED],
    [`iss=${ISSUER}`, 'The answer has no code.'],
    [`code=&iss=${ISSUER}`, 'The parameter code of the answer is empty.'],
    [`code=a&iss=${ISSUER}&id_token=x`, rejected('implicit and hybrid flows are not supported')],
    [`code=a%0d%0ab&iss=${ISSUER}`, 'The answer has no code.'],
  ])('%s gives none', (query, reason) => {
    expect(read(query)).toBe(reason)
  })

  it('may leave the issuer out where none was promised, but not name another one', () => {
    expect(read('code=abc', { promised: false })).toBe('abc')
    expect(read('code=abc&iss=https://evil.test', { promised: false })).toBe(OTHER_ISSUER)
    expect(read('code=abc&iss=', { promised: false })).toContain('iss of the answer is empty')
  })

  it.each(['', 'state=&', `state=${STATE.slice(1)}&`, `state=${STATE}a&`])(
    'with the state %j gives no code',
    (state) => {
      expect(read(`code=abc&iss=${ISSUER}`, { state })).toMatch(/rejected: .*"state"/)
    },
  )
})
