/** Any text is a pattern that means what it means natively, or is rejected with a PatternError. */
import { expect } from 'vitest'
import { fuzz, mutatedText, type Random } from '../../../testing/fuzzing/fuzz.ts'
import { Matcher } from './matcher.ts'
import { PatternError } from './pattern-error.ts'

const SEEDS = [
  '^[a-z0-9]+(?:-[a-z0-9]+)*$',
  '[A-Z]{2}\\d{2}(?: ?[\\dA-Z]{4}){3,7}',
  '(\\d+|[^\\s"]*?)\\.\\x41\\u{1f600}',
  '[\\w.+-]{1,9}@(?:[a-z-]+\\.)+[a-z]{2,}',
  '(?:|a|^b$|\\/)*[^]?[]?|\\cA\\0[\\b\\-\\d]',
]
const PIECES = [
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  '*',
  '+',
  '?',
  '|',
  '^',
  '$',
  '.',
  '-',
  '\\',
  ',',
  '(?:',
  '(?=',
  '(?<=',
  '(?<n>',
  '\\1',
  '\\k',
  '\\b',
  '\\p{L}',
  '{2,3}',
  '{0}',
  '\\u',
  '\\ud83d',
  '\\u{',
  '\\x4',
  '\\c',
  '\\-',
  '[^',
  'a-z',
  '\\w',
  '\u{1f600}',
  '\ud83d',
  '\ude00',
  'é',
]
const CHARACTERS = ['a', 'B', '7', '-', '.', '@', ' ', 'é', '\u{1f600}', '\ud83d', '\n', '"', '/']
/** Messages for regular expressions of ECMAScript that patterns do not support. */
const LEFT_OUT =
  /^a (?:look-|named|group with|back-|word|Unicode)|^too high|^more than|^\d+ characters/
/** Escapes that the runtime accepts although ECMAScript does not. */
const FORGIVEN = /\\[^\0-\x7f]/

function drawn(random: Random): string {
  let pattern = random.pick(SEEDS)
  if (random.chance(3)) pattern = mutatedText(random, pattern)
  for (let edits = random.below(5); edits > 0; edits--) {
    const at = random.below(pattern.length + 1)
    pattern = pattern.slice(0, at) + random.pick(PIECES) + pattern.slice(at + random.below(3))
  }
  return pattern
}

function natively(pattern: string): RegExp | null {
  try {
    new RegExp(pattern, 'u')
    return new RegExp(`^(?:${pattern})$`, 'u')
  } catch {
    return null
  }
}

function matcherOf(pattern: string): Matcher | PatternError {
  try {
    return new Matcher(pattern)
  } catch (error) {
    if (error instanceof PatternError) return error
    throw error
  }
}

fuzz('a text is a pattern with its native meaning, or is rejected', (random) => {
  const pattern = drawn(random)
  const native = natively(pattern)
  const matcher = matcherOf(pattern)
  if (matcher instanceof PatternError) {
    const allowed = LEFT_OUT.test(matcher.wrong) || FORGIVEN.test(pattern)
    if (native !== null && !allowed) expect.fail(`${pattern}: ${matcher}`)
    return
  }
  if (native === null) expect.fail(`${JSON.stringify(pattern)} is not a regular expression`)
  for (let texts = 3; texts > 0; texts--) {
    const text = Array.from({ length: random.below(7) }, () => random.pick(CHARACTERS)).join('')
    if (matcher.matches(text) !== native.test(text)) expect.fail(JSON.stringify([pattern, text]))
  }
})
