import { describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { validateResponse } from './authorization-responses.ts'

const ISSUER = 'https://idp.test/tenant'
const STATE = 'a'.repeat(43)

/** Returns the code or the reason of the rejection. The valid state precedes the query. */
function read(query: string, { promised = true, state = `state=${STATE}&` } = {}): string {
  const server = { issuer: ISSUER, authorization_response_iss_parameter_supported: promised }
  const expected = { server, client: { client_id: 'svc-cli' }, state: new Secret(STATE) }
  try {
    return validateResponse(new URLSearchParams(state + query), expected).get('code') ?? ''
  } catch (error) {
    if (!isFault(error, 'CLIENT_BROWSER_LOGIN_FAILED')) throw error
    return error.detail ?? ''
  }
}

const rejected = (reason: string): string => `The response of the provider was rejected: ${reason}.`
const NO_ISSUER = rejected('response parameter "iss" (issuer) missing')
const OTHER_ISSUER = rejected('unexpected "iss" (issuer) response parameter value')
const REPEATED = 'A parameter of the response occurs twice.'

describe('an authorization response', () => {
  it('a response with the expected issuer has its code accepted', () => {
    expect(read(`code=abc&iss=${encodeURIComponent(ISSUER)}`)).toBe('abc')
    expect(read('code=a%2Bb+c&session_state=', { promised: false })).toBe('a+b c')
  })

  it.each([
    ['code=abc', NO_ISSUER],
    ['error=access_denied', NO_ISSUER],
    [`code=abc&iss=${ISSUER}/`, OTHER_ISSUER],
    ['code=abc&iss=HTTPS://idp.test/tenant', OTHER_ISSUER],
    ['code=abc&iss=https://idp.test:443/tenant', OTHER_ISSUER],
    ['code=abc&iss=', 'The parameter iss of the response is empty.'],
    [`code=a&code=b&iss=${ISSUER}`, REPEATED],
    [`code=a&iss=${ISSUER}&iss=https://evil.test`, REPEATED],
    [`error=a&error=b&iss=${ISSUER}`, REPEATED],
    [`code=a&code=a&iss=${ISSUER}`, REPEATED],
    [`code=a&error=access_denied&iss=${ISSUER}`, 'The response has both a code and an error.'],
    [`code=a&error=&iss=${ISSUER}`, 'The parameter error of the response is empty.'],
    [`error=access_denied&iss=${ISSUER}`, 'The provider reported access_denied.'],
    [`error=a%1b[2J&iss=${ISSUER}`, 'The provider reported an unknown error.'],
    [`state=${STATE}&code=a&iss=${ISSUER}`, REPEATED],
    [`iss=${ISSUER}`, 'The response has no code.'],
    [`code=&iss=${ISSUER}`, 'The parameter code of the response is empty.'],
    [`code=a&iss=${ISSUER}&id_token=x`, rejected('implicit and hybrid flows are not supported')],
    [`code=a%0d%0ab&iss=${ISSUER}`, 'The response has no code.'],
  ])('a response is rejected: %s', (query, reason) => {
    expect(read(query)).toBe(reason)
  })

  it('a response may lack an unpromised issuer, but not have another one', () => {
    expect(read('code=abc', { promised: false })).toBe('abc')
    expect(read('code=abc&iss=https://evil.test', { promised: false })).toBe(OTHER_ISSUER)
    expect(read('code=abc&iss=', { promised: false })).toContain('iss of the response is empty')
  })

  it.each(['', 'state=&', `state=${STATE.slice(1)}&`, `state=${STATE}a&`])(
    'a response is rejected with the state %j',
    (state) => {
      expect(read(`code=abc&iss=${ISSUER}`, { state })).toMatch(/rejected: .*"state"/)
    },
  )
})
