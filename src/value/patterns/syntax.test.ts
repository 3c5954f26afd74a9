import { expect, test } from 'vitest'
import { PatternError } from './pattern-error.ts'
import { PATTERN_LENGTH_MAX, PATTERN_SIZE_MAX, parsePattern } from './syntax.ts'

function errorOf(pattern: string): string | null {
  try {
    parsePattern(pattern)
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(PatternError)
    return (error as PatternError).message
  }
}

test.each([
  ['a(?=b)', 'a look-ahead at character 2. Say it without'],
  ['a(?!b)', 'a look-ahead at character 2'],
  ['(?<=a)b', 'a look-behind at character 1'],
  ['(?<!a)b', 'a look-behind at character 1'],
  ['(?<year>a)', 'a named group at character 1. Leave its name out'],
  ['(?i:a)', 'a group with flags at character 1'],
  ['(a)\\1', 'a back-reference at character 4. Check the value in the handler'],
  ['\\k<a>', 'a back-reference at character 1'],
  ['a\\b', 'a word boundary at character 2'],
  ['\\p{L}', 'a Unicode property at character 1'],
  ['[\\P{L}]', 'a Unicode property at character 2'],
])('what needs more than one look is named with its place: %s', (pattern, message) => {
  expect(errorOf(pattern)).toContain(message)
})

test.each([
  ['a)', 'a ")" that closes nothing at character 2. Write \\)'],
  ['(a', 'a "(" that is not closed at character 1. Add ")"'],
  ['x(?:a', 'a "(" that is not closed at character 2'],
  ['[a', 'a "[" that is not closed at character 1. Add "]"'],
  ['a]', 'a "]" that means nothing at character 2. Write \\]'],
  ['}', 'a "}" that means nothing at character 1'],
  ['*', 'a "*" that means nothing at character 1. Put before it'],
  ['a**', 'a "*" that means nothing at character 3'],
  ['^+', 'a "+" that means nothing at character 2'],
  ['a{', 'a "{" that does not begin a count at character 2. Write {2}'],
  ['a{,5}', 'a "{" that does not begin a count at character 2'],
  ['a{5,2}', 'a count above its upper bound at character 2'],
  ['a{601}', `too high a count at character 2. Use at most ${PATTERN_SIZE_MAX}`],
  [`a{0,${'9'.repeat(400)}}`, 'too high a count at character 2'],
  ['[b-a]', 'a range whose end is before its start at character 2'],
  ['[\\w-a]', 'a range from or to a whole class at character 2'],
  ['\\@', 'an escape that does not exist at character 1'],
  ['\\-', 'an escape that does not exist at character 1'],
  ['[\\1]', 'an escape that does not exist at character 2'],
  ['\\u{110000}', 'a code point above 10FFFF at character 1'],
  ['\\', 'an end where more is needed at character 2'],
])('the error for an invalid regular expression names the location: %s', (pattern, message) => {
  expect(errorOf(pattern)).toContain(message)
})

test('the text of a pattern and its size with expanded repetitions are bounded', () => {
  expect(errorOf('a'.repeat(PATTERN_LENGTH_MAX))).toBe(null)
  expect(errorOf('a'.repeat(PATTERN_LENGTH_MAX + 1))).toContain('513 characters, at most 512')
  expect(errorOf(`a{${PATTERN_SIZE_MAX - 1}}`)).toBe(null)
  const large = 'more than 600 places once its repetitions are written out'
  for (const pattern of ['a{599}b', '(?:a{60}){10}', '(?:(?:){50}){50}', '(?:a{300}){2,}']) {
    expect(errorOf(pattern)).toContain(large)
  }
  expect(errorOf(`${'('.repeat(256)}${')'.repeat(256)}`)).toBe(null)
  expect(errorOf('(?:a{499}){0}')).toBe(null)
})
