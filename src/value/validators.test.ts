import { expect, test } from 'vitest'
import type { Json } from './strict-json.ts'
import { ValidationError } from './validation-error.ts'
import { parseValidator } from './validator-json.ts'
import { compileValidator, type ValidatorJson } from './validators.ts'
import { Timestamp, type Value } from './values.ts'

function rejection(work: () => unknown): string | null {
  try {
    work()
    return null
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    return error.message
  }
}

test('a string must match its pattern as a whole, within its other bounds', () => {
  const slug: ValidatorJson = { type: 'string', maximumLength: 5, pattern: '[a-z]+(?:-[a-z]+)*' }
  for (const coerce of [false, true]) {
    const check = compileValidator(slug, { coerce })
    const rejected = (value: Value) => rejection(() => check(value, 'arguments.name'))
    expect(check('ab-cd', 'arguments.name')).toBe('ab-cd')
    const expected = 'arguments.name: a string that matches /[a-z]+(?:-[a-z]+)*/'
    for (const value of ['', 'ab-', 'x ab', 'AB', 'ab\n']) expect(rejected(value)).toBe(expected)
    expect(rejected('AB-CDE')).toBe('arguments.name: at most 5 characters')
    expect(rejected(5n)).toBe('arguments.name: a string')
  }
})

test('exact values are returned unchanged, and coerced ones are copies', () => {
  const stamp: ValidatorJson = { type: 'timestamp' }
  const checks: ValidatorJson[] = [
    { type: 'object', fields: { at: stamp, to: stamp } },
    { type: 'record', values: stamp },
  ]
  for (const json of checks) {
    const check = compileValidator(json, { coerce: true })
    const loose = new Map<string, Value>([
      ['at', 1n],
      ['to', new Timestamp(2n)],
    ])
    const exact = check(loose, '$')
    expect(exact).toEqual(new Map(Object.entries({ at: new Timestamp(1n), to: new Timestamp(2n) })))
    expect(loose.get('at')).toBe(1n)
    expect(check(exact, '$')).toBe(exact)
  }
})

test('a union tries its next member where a pattern does not match', () => {
  const members: ValidatorJson[] = [
    { type: 'string', pattern: '\\d+' },
    { type: 'string', pattern: 'none' },
  ]
  const check = compileValidator({ type: 'union', members }, { coerce: false })
  expect([check('42', '$'), check('none', '$')]).toEqual(['42', 'none'])
  expect(rejection(() => check('4x', '$'))).toBe('$: a member of the union')
})

test.each<[Json, string]>([
  ['(?=a)', '$.pattern: a pattern (this one has a look-ahead at character 1)'],
  ['a'.repeat(513), '$.pattern: a pattern (this one has 513 characters, at most 512)'],
  [5, '$.pattern: a pattern'],
  [null, '$.pattern: a pattern'],
  ['\ud800', '$.pattern: a pattern'],
])('a manifest carries no pattern that cannot be matched: %s', (pattern, message) => {
  expect(rejection(() => parseValidator({ type: 'string', pattern }))).toBe(message)
  expect(rejection(() => parseValidator({ type: 'bytes', pattern }))).toContain('no unknown field')
})
