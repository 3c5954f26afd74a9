import { expect, test } from 'vitest'
import { isName } from './names.ts'

test.each(['a', 'Ada Lovelace', 'é', '日本', '😀'.repeat(128), 'x'.repeat(128), ' '])(
  '%j is a name',
  (text) => {
    expect(isName(text)).toBe(true)
  },
)

test.each([
  '',
  'x'.repeat(129),
  '😀'.repeat(129),
  'e\u0301',
  'a\u0000',
  'a\nb',
  'a\u007f',
  'a\u0085',
  '\ud800',
  'x'.repeat(1_000_000),
])('%j is not a name', (text) => {
  expect(isName(text)).toBe(false)
})
