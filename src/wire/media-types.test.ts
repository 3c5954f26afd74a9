import { expect, test } from 'vitest'
import { isJson } from './media-types.ts'

test.each<[string | null, boolean]>([
  ['application/json', true],
  ['APPLICATION/JSON', true],
  ['application/json;charset=utf-8', true],
  ['application/json ; Charset=UTF-8', true],
  ['application/json; charset="utf-8"', true],
  ['application/json; charset="utf-8', false],
  ["application/json; charset='utf-8'", false],
  ['application/json; charset=latin1', false],
  ['application/json; charset=utf-8, text/plain', false],
  ['application/jsonp', false],
  ['text/plain', false],
  ['', false],
  [null, false],
])('%j is JSON: %j', (contentType, expected) => {
  expect(isJson(contentType)).toBe(expected)
})
