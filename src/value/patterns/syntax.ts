/**
 * Parses a pattern: a regular expression of ECMAScript with the flag `u`, without constructs that
 * need backtracking or several passes over the text.
 */
import {
  ANY_BUT_LINE_ENDS,
  type CodePoints,
  complementOf,
  type Range,
  toCodePoints,
} from './code-points.ts'
import { classEscape, type Escape, readEscape } from './escapes.ts'
import { PatternError } from './pattern-error.ts'
import { TextReader } from './text-reader.ts'

export type Pattern =
  /** One code point of the set. */
  | { readonly kind: 'one'; readonly of: CodePoints }
  | { readonly kind: 'sequence' | 'choice'; readonly parts: readonly Pattern[] }
  /** `most` is null without an upper bound. */
  | {
      readonly kind: 'repeat'
      readonly part: Pattern
      readonly least: number
      readonly most: number | null
    }
  /** The position before the first code point, or after the last. */
  | { readonly kind: 'start' | 'end' }

/** Length of a pattern in UTF-16 units. */
export const PATTERN_LENGTH_MAX = 512
/** Size of a pattern whose counted repetitions are expanded, in code points and choices. */
export const PATTERN_SIZE_MAX = 600

const SYNTAX = '^$\\.*+?()[]{}|'

/** Throws PatternError, with the position in UTF-16 units from 1. */
export function parsePattern(text: string): Pattern {
  if (text.length > PATTERN_LENGTH_MAX) {
    throw new PatternError(
      `${text.length} characters, at most ${PATTERN_LENGTH_MAX}`,
      'Shorten it, or check the value in the handler',
    )
  }
  const reader = new TextReader(text)
  const pattern = choice(reader)
  if (!reader.atEnd) throw reader.error('a ")" that closes nothing', 'Write \\)')
  if (sizeOf(pattern) > PATTERN_SIZE_MAX) {
    throw new PatternError(
      `more than ${PATTERN_SIZE_MAX} places once its repetitions are written out`,
      'Use smaller counts, or maximumLength',
    )
  }
  return pattern
}

/** Returns the size for PATTERN_SIZE_MAX. Empty parts count too, since they are copied as well. */
function sizeOf(pattern: Pattern): number {
  switch (pattern.kind) {
    case 'one':
    case 'start':
    case 'end':
      return 1
    case 'sequence':
    case 'choice':
      return pattern.parts.reduce((sum, part) => sum + sizeOf(part), 1)
    case 'repeat':
      return 1 + sizeOf(pattern.part) * (pattern.most ?? Math.max(pattern.least, 1))
  }
}

function choice(reader: TextReader): Pattern {
  const parts = [sequence(reader)]
  while (reader.take('|')) parts.push(sequence(reader))
  return parts.length === 1 ? parts[0]! : { kind: 'choice', parts }
}

function sequence(reader: TextReader): Pattern {
  const parts: Pattern[] = []
  while (!reader.atEnd && !reader.sees('|') && !reader.sees(')')) parts.push(term(reader))
  return parts.length === 1 ? parts[0]! : { kind: 'sequence', parts }
}

function term(reader: TextReader): Pattern {
  if (reader.take('^')) return { kind: 'start' }
  if (reader.take('$')) return { kind: 'end' }
  return repetition(reader, atom(reader))
}

function atom(reader: TextReader): Pattern {
  if (reader.take('.')) return { kind: 'one', of: ANY_BUT_LINE_ENDS }
  if (reader.take('(')) return group(reader)
  if (reader.take('[')) return { kind: 'one', of: characterClass(reader) }
  if (reader.take('\\')) return { kind: 'one', of: setOf(readEscape(reader, false)) }
  const point = reader.next()
  const character = String.fromCodePoint(point)
  if (!SYNTAX.includes(character)) return { kind: 'one', of: setOf(point) }
  const fix = '*+?{'.includes(character) ? 'Put before it what repeats, or w' : 'W'
  throw reader.error(`a "${character}" that means nothing`, `${fix}rite \\${character}`, 1)
}

function group(reader: TextReader): Pattern {
  const opened = reader.position
  rejectSpecialGroup(reader)
  const inner = choice(reader)
  if (!reader.take(')')) {
    throw reader.error('a "(" that is not closed', 'Add ")"', reader.position - opened + 1)
  }
  return inner
}

/** Consumes `?:`. Rejects other groups that begin with `?`, which are unsupported. */
function rejectSpecialGroup(reader: TextReader): void {
  if (reader.take('?:')) return
  const others: readonly [text: string, name: string][] = [
    ['?=', 'a look-ahead'],
    ['?!', 'a look-ahead'],
    ['?<=', 'a look-behind'],
    ['?<!', 'a look-behind'],
    ['?<', 'a named group'],
    ['?', 'a group with flags'],
  ]
  const found = others.find(([text]) => reader.sees(text))
  if (found === undefined) return
  const named = found[0] === '?<'
  const fix = named ? 'Leave its name out' : 'Say it without, or check the value in the handler'
  throw reader.error(found[1], fix, 1)
}

/** Parses the quantifier of an atom. A lazy repetition matches the same texts as a greedy one. */
function repetition(reader: TextReader, part: Pattern): Pattern {
  const bounds = repetitionBounds(reader)
  if (bounds === null) return part
  reader.take('?')
  return { kind: 'repeat', part, ...bounds }
}

function repetitionBounds(reader: TextReader): { least: number; most: number | null } | null {
  if (reader.take('*')) return { least: 0, most: null }
  if (reader.take('+')) return { least: 1, most: null }
  if (reader.take('?')) return { least: 0, most: 1 }
  if (!reader.sees('{')) return null
  const found = reader.takeForm(/\{(\d+)(?:,(\d*))?\}/y)
  if (found === null) {
    throw reader.error('a "{" that does not begin a count', 'Write {2}, {2,} or {2,5}, or \\{')
  }
  const [whole, low, high] = found
  const least = Number(low)
  const most = high === '' ? null : Number(high ?? low)
  if (Math.max(least, most ?? 0) > PATTERN_SIZE_MAX) {
    const fix = `Use at most ${PATTERN_SIZE_MAX}, or maximumLength`
    throw reader.error('too high a count', fix, whole.length)
  }
  if (most !== null && most < least) {
    throw reader.error('a count above its upper bound', 'Exchange the two', whole.length)
  }
  return { least, most }
}

function characterClass(reader: TextReader): CodePoints {
  const opened = reader.position
  const negated = reader.take('^')
  const ranges: Range[] = []
  while (!reader.take(']')) {
    if (reader.atEnd) {
      throw reader.error('a "[" that is not closed', 'Add "]"', reader.position - opened + 1)
    }
    ranges.push(...classRange(reader))
  }
  const set = toCodePoints(ranges)
  return negated ? complementOf(set) : set
}

/** Parses one member, or a range of two members with a hyphen. */
function classRange(reader: TextReader): CodePoints {
  const from = reader.position
  const first = classMember(reader)
  if (!reader.sees('-') || reader.sees('-]')) return setOf(first)
  reader.take('-')
  if (reader.atEnd) return setOf(first)
  const last = classMember(reader)
  const length = reader.position - from
  if (typeof first !== 'number' || typeof last !== 'number') {
    throw reader.error('a range from or to a whole class', 'Write \\- for a hyphen', length)
  }
  if (first > last)
    throw reader.error('a range whose end is before its start', 'Exchange them', length)
  return [{ first, last }]
}

function classMember(reader: TextReader): Escape {
  return reader.take('\\') ? (classEscape(reader) ?? readEscape(reader, true)) : reader.next()
}

function setOf(members: Escape): CodePoints {
  return typeof members === 'number' ? [{ first: members, last: members }] : members
}
