import { describe, expect, it } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import { codeOf, type ExpectedIssuer } from './answers.ts'

const ISSUER = 'https://idp.test/tenant'

function read(query: string, required = true): string {
  const expected: ExpectedIssuer = { issuer: ISSUER, required }
  try {
    return codeOf(new URLSearchParams(query), expected).reveal()
  } catch (error) {
    if (!isFault(error, 'CLIENT_BROWSER_LOGIN_FAILED')) throw error
    return error.detail ?? ''
  }
}

describe('an answer of the provider', () => {
  it('with our issuer gives its code', () => {
    expect(read(`state=s&code=abc&iss=${encodeURIComponent(ISSUER)}`)).toBe('abc')
    expect(read('state=s&code=a%2Bb+c&session_state=x', false)).toBe('a+b c')
  })

  it.each([
    ['code=abc', 'The answer does not name its issuer.'],
    ['error=access_denied', 'The answer does not name its issuer.'],
    [`code=abc&iss=${ISSUER}/`, 'The answer is of another issuer.'],
    ['code=abc&iss=HTTPS://idp.test/tenant', 'The answer is of another issuer.'],
    ['code=abc&iss=https://idp.test:443/tenant', 'The answer is of another issuer.'],
    ['code=abc&iss=', 'The answer is of another issuer.'],
    [`code=a&code=b&iss=${ISSUER}`, 'A parameter of the answer stands twice.'],
    [`code=a&iss=${ISSUER}&iss=https://evil.test`, 'A parameter of the answer stands twice.'],
    [`error=a&error=b&iss=${ISSUER}`, 'A parameter of the answer stands twice.'],
    [`code=a&code=a&iss=${ISSUER}`, 'A parameter of the answer stands twice.'],
    [`code=a&error=access_denied&iss=${ISSUER}`, 'The answer is a code and an error at once.'],
    [`code=&error=&iss=${ISSUER}`, 'The answer is a code and an error at once.'],
    [`error=access_denied&iss=${ISSUER}`, 'The provider answered access_denied.'],
    [`error=a%1b[2J&iss=${ISSUER}`, 'The provider answered an unknown error.'],
    [`error=&iss=${ISSUER}`, 'The provider answered an unknown error.'],
    [`iss=${ISSUER}`, 'The answer has no code.'],
    [`code=&iss=${ISSUER}`, 'The answer has no code.'],
    [`code=a%0d%0ab&iss=${ISSUER}`, 'The answer has no code.'],
  ])('%s gives none', (query, reason) => {
    expect(read(query)).toBe(reason)
  })

  it('may leave the issuer out where none was promised, but not name another one', () => {
    expect(read('code=abc', false)).toBe('abc')
    expect(read('code=abc&iss=https://evil.test', false)).toBe('The answer is of another issuer.')
  })
})
