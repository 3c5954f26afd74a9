/** Texts of URLs as plain JSON. */
import { expect, test } from 'vitest'
import type { Json } from '../strict-json.ts'
import type { ValidatorJson } from '../validators.ts'
import { compilePlainParameter } from './parameters.ts'

const string = { type: 'string' } as const
const float64 = { type: 'float64' } as const
const union = (...members: ValidatorJson[]) => ({ type: 'union', members }) as const
const auto = { type: 'literal', value: { string: 'auto' } } as const

test.each<readonly [ValidatorJson, string, Json]>([
  [string, '5', '5'],
  [string, 'null', 'null'],
  [string, '"x"', '"x"'],
  [string, '', ''],
  [{ type: 'int64' }, '9007199254740993', '9007199254740993'],
  [{ type: 'timestamp' }, '2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
  [{ type: 'bytes' }, '-_8', '-_8'],
  [float64, '1.5', 1.5],
  [{ type: 'boolean' }, 'true', true],
  [{ type: 'nullable', inner: float64 }, 'null', null],
  [{ type: 'nullable', inner: string }, 'null', 'null'],
  [union(auto, float64), 'auto', 'auto'],
  [union(auto, float64), '1.5', 1.5],
  [{ type: 'array', items: string }, '["a"]', ['a']],
  [{ type: 'any' }, '{"type":"int64","value":"5"}', { type: 'int64', value: '5' }],
])('%j reads %s', (validator, text, json) => {
  expect(compilePlainParameter(validator)(text)).toEqual(json)
})

test.each<readonly [ValidatorJson, string]>([
  [float64, 'abc'],
  [float64, '1e999'],
  [float64, ''],
  [{ type: 'boolean' }, 'TRUE'],
  [{ type: 'array', items: string }, '{"a":1,"a":2}'],
  [{ type: 'array', items: string }, '['.repeat(9_000)],
])('a text that is neither a value nor JSON stays a text: %j %s', (validator, text) => {
  expect(compilePlainParameter(validator)(text)).toBe(text)
})
