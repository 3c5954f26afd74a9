/** Results of Functions as responses. */
import { expect, test } from 'vitest'
import { functionManifest } from '../../../../testing/products.ts'
import { isFault } from '../../../errors/fault.ts'
import { HTTP_RESPONSE } from '../../../value/http/responses.ts'
import { encodeTagged } from '../../../value/tagged.ts'
import type { ValidatorJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'
import { PlainForms } from '../functions/forms.ts'
import { renderResult } from './results.ts'

const plainForms = new PlainForms()
const render = (returns: ValidatorJson, value: Value) => {
  const definition = functionManifest('api.read', { kind: 'query', returns })
  return renderResult(encodeTagged(value), { plainForms, definition, caching: 'none' })
}
const NO_STORE = ['cache-control', 'no-store'] as const

test('a result is answered with 200 and its plain JSON', () => {
  const { status, headers, body } = render(
    { type: 'object', fields: { at: { type: 'timestamp' }, count: { type: 'int64' } } },
    new Map<string, Value>([['count', 5n]]).set('at', 0n),
  )
  expect([status, Object.fromEntries(headers)]).toEqual([
    200,
    { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  ])
  expect(typeof body).toBe('string')
  expect(render({ type: 'array', items: { type: 'int64' } }, [1n, 2n]).body).toBe('[1,2]')
})

test('a Function that declares a response decides it', () => {
  const value = new Map<string, Value>([
    ['status', 429],
    ['headers', new Map([['Retry-After', '5']])],
    ['body', 'later'],
  ])
  expect(render(HTTP_RESPONSE, value)).toEqual({
    status: 429,
    headers: new Map([
      NO_STORE,
      ['retry-after', '5'],
      ['content-type', 'text/plain; charset=utf-8'],
    ]),
    body: 'later',
  })
})

function failureOf(value: Value): string | undefined {
  try {
    render(HTTP_RESPONSE, value)
    return undefined
  } catch (error) {
    if (isFault(error, 'FUNCTION_FAILED')) return error.detail
    throw error
  }
}

test('a response outside of the rules is a failure of the Function, which the log names', () => {
  const cookie = new Map([['headers', new Map([['Set-Cookie', 'a=b']])]])
  expect(failureOf(cookie)).toMatch(/^the response\.headers\.set-cookie: a header that may be/)
  const cached = new Map([['headers', new Map([['cache-control', 'public']])]])
  expect(failureOf(cached)).toContain('.headers.cache-control: no-store alone')
})

test.each<readonly [string, Value]>([
  ['no object', null],
  ['a field of another type', new Map([['status', '200']])],
  ['an undeclared field', new Map([['more', 1n]])],
  ['headers that are no record', new Map([['headers', ['a']]])],
])('a result of another Release that is no response is a failure: %s', (_, value) => {
  expect(failureOf(value)).toMatch(/^the response/)
})
