/**
 * Goal: patterns match like native regular expressions, at a bounded cost.
 * Method: random patterns and texts against the native engine; hard patterns by their steps.
 */

import { expect, test } from 'vitest'
import { fc, inputs } from '../../../testing/properties.ts'
import { SEED } from '../../../testing/seeds.ts'
import { Matcher } from './matcher.ts'
import { PatternError } from './pattern-error.ts'
import { parsePattern } from './syntax.ts'

function natively(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}

const literal = fc.constantFrom('a', 'b', '1', '_', '-', 'é', '\u{1f600}', ' ', '\\n', '\\.', '\\/')
const numbered = fc.constantFrom(
  '\\x61',
  '\\u0062',
  '\\u{1f600}',
  '\\ud83d\\ude00',
  '\\cJ',
  '\\x00',
)
const set = fc.constantFrom('.', '\\d', '\\D', '\\w', '\\W', '\\s', '\\S')
const member = fc.oneof(
  literal.filter((text) => text !== '-'),
  numbered,
  set.filter((text) => text !== '.'),
  fc.constantFrom('a-b', '\\--a', '0-9', '\\u{1f5ff}-\\u{1f600}', '\\b', '[', '.', '\ud83d'),
)
const characterClass = fc
  .tuple(fc.boolean(), fc.array(member, { maxLength: 4 }), fc.constantFrom('', '-'))
  .map(([negated, members, last]) => `[${negated ? '^' : ''}${members.join('')}${last}]`)
const count = fc
  .tuple(fc.nat({ max: 3 }), fc.option(fc.nat({ max: 2 }), { nil: null }), fc.boolean())
  .map(([least, more, exact]) =>
    exact ? `{${least}}` : `{${least},${more === null ? '' : least + more}}`,
  )
const quantifier = fc
  .tuple(fc.oneof(fc.constantFrom('*', '+', '?'), count), fc.constantFrom('', '?'))
  .map((parts) => parts.join(''))

const pattern: fc.Arbitrary<string> = fc
  .letrec<{ choice: string; term: string }>((tie) => ({
    choice: fc
      .array(fc.array(tie('term'), { maxLength: 4 }), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.map((terms) => terms.join('')).join('|')),
    term: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'pattern' },
      { weight: 4, arbitrary: literal },
      numbered,
      set,
      characterClass,
      fc.constantFrom('^', '$'),
      fc.tuple(fc.oneof(literal, set, characterClass), quantifier).map((parts) => parts.join('')),
      {
        weight: 2,
        arbitrary: fc
          .tuple(fc.constantFrom('(', '(?:'), tie('choice'), fc.oneof(fc.constant(''), quantifier))
          .map(([open, inner, repeated]) => `${open}${inner})${repeated}`),
      },
    ),
  }))
  .choice.filter((text) => !isTooLarge(text))

function isTooLarge(text: string): boolean {
  try {
    parsePattern(text)
    return false
  } catch (error) {
    return error instanceof PatternError && error.wrong.startsWith('more than')
  }
}

const characters = 'a b 1 _ - é . / [ x \u{1f600} \u{1f5ff} \ud83d \ude00 \n \r \u2028 \ufeff \0 \b'
const text = fc
  .array(fc.constantFrom(' ', '\u00a0', ...characters.split(' ')), { maxLength: 8 })
  .map((parts) => parts.join(''))

test(`a pattern accepts what the native engine accepts of a whole text (SVC_SEED=${SEED})`, {
  tags: ['slow'],
}, () => {
  let accepted = 0
  let rejected = 0
  const property = fc.property(
    pattern,
    fc.array(text, { minLength: 4, maxLength: 4 }),
    (p, all) => {
      const native = natively(p)
      const matcher = new Matcher(p)
      for (const each of ['', ...all]) {
        const expected = native.test(each)
        if (expected) accepted += 1
        else rejected += 1
        // The second time, the states are cached.
        expect([matcher.matches(each), matcher.matches(each)]).toEqual([expected, expected])
      }
    },
  )
  fc.assert(property, { seed: SEED, numRuns: inputs(20_000) })
  expect(Math.min(accepted, rejected)).toBeGreaterThan(inputs(5_000))
})

test('every code point is in the class of the native engine', { tags: ['slow'] }, () => {
  for (const each of ['.', '\\d', '\\w', '\\s', '[^\\S\\d]', '[^a-\\u{ffff}]']) {
    const native = natively(each)
    const matcher = new Matcher(each)
    const wrong: string[] = []
    for (let point = 0; point <= 0x10_ffff; point++) {
      const character = String.fromCodePoint(point)
      if (matcher.matches(character) !== native.test(character)) wrong.push(point.toString(16))
    }
    expect(wrong).toEqual([])
  }
})

/** Patterns on which a backtracking engine takes exponential or high polynomial time. */
const HARD: readonly [pattern: string, text: (length: number) => string][] = [
  ['(a+)+b', (length) => 'a'.repeat(length)],
  ['(a|a)*b', (length) => 'a'.repeat(length)],
  ['(a*)*b', (length) => 'a'.repeat(length)],
  ['(?:a?){150}a{150}b', (length) => 'a'.repeat(length)],
  ['(?:(?:(?:a{0,7}){0,7}){0,7})*b', (length) => 'a'.repeat(length)],
  ['(.*)(.*)(.*)(.*)(.*)[^a]', (length) => 'a'.repeat(length)],
  ['(\\w+\\s?)+!', (length) => 'word '.repeat(length / 5)],
]

test.each(HARD)('the cost of %s is linear in the text', (hard, make) => {
  const steps = (length: number): number => {
    const matcher = new Matcher(hard)
    expect(matcher.matches(make(length))).toBe(false)
    return matcher.cost.steps
  }
  // States repeat, so ten times the text costs no further steps.
  expect(steps(100_000)).toBe(steps(10_000))
  expect(steps(10_000)).toBeLessThan(3_000_000)
})

test('a pattern with more states than the cache costs its size for each character', () => {
  const size = 200
  const matcher = new Matcher(`[ab]*a[ab]{${size}}`)
  const native = natively(`[ab]*a[ab]{${size}}`)
  let draw = SEED
  const letters = Array.from({ length: 20_000 }, () => {
    draw = (Math.imul(draw, 1_103_515_245) + 12_345) >>> 0
    return draw & 0x1_0000 ? 'a' : 'b'
  })
  const long = letters.join('')
  expect(matcher.matches(long)).toBe(native.test(long))
  const { steps, cells } = matcher.cost
  expect(steps).toBeGreaterThan(letters.length * (size / 4))
  expect(steps).toBeLessThan(letters.length * 4 * size)
  expect(cells).toBeLessThan(2 ** 16)
  for (const each of ['', 'a', `a${'b'.repeat(size)}`, `b${'b'.repeat(size)}`]) {
    expect(matcher.matches(each)).toBe(native.test(each))
  }
})
