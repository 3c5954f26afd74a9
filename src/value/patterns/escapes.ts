/** Parses the escapes of a pattern, after their backslash. */
import {
  CODE_POINT_MAX,
  type CodePoints,
  complementOf,
  DIGITS,
  SPACES,
  WORD_CHARACTERS,
} from './code-points.ts'
import type { TextReader } from './text-reader.ts'

/** One code point, or a set of them. */
export type Escape = number | CodePoints

const SETS: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complementOf(DIGITS),
  w: WORD_CHARACTERS,
  W: complementOf(WORD_CHARACTERS),
  s: SPACES,
  S: complementOf(SPACES),
}
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 }

/** Parses an escape that exists in classes only. Null for any other. */
export function classEscape(reader: TextReader): Escape | null {
  if (reader.take('b')) return 8
  return reader.take('-') ? '-'.charCodeAt(0) : null
}

/** Throws PatternError for unknown escapes, and for those that need backtracking. */
export function readEscape(reader: TextReader, inClass: boolean): Escape {
  const code = codeEscape(reader)
  if (code !== null) return code
  const point = reader.next()
  const letter = String.fromCodePoint(point)
  if (Object.hasOwn(SETS, letter)) return SETS[letter]!
  if (Object.hasOwn(CONTROLS, letter)) return CONTROLS[letter]!
  if ('^$\\.*+?()[]{}|/'.includes(letter)) return point
  const back = letter.length + 1
  if (!inClass && /[1-9k]/.test(letter)) {
    throw reader.error('a back-reference', 'Check the value in the handler', back)
  }
  if (!inClass && /[bB]/.test(letter)) {
    throw reader.error('a word boundary', 'Say which characters stand there', back)
  }
  if (/[pP]/.test(letter)) {
    throw reader.error('a Unicode property', 'List the ranges, such as [a-z\\u00df-\\u024f]', back)
  }
  throw reader.error('an escape that does not exist', 'Leave the backslash out, or double it', back)
}

const SURROGATES = /u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/y
const HEXADECIMAL = /u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})/y

/** Parses `\0`, `\cA`, `\x41`, `\u0041` or `\u{41}`. Null for other escapes. */
function codeEscape(reader: TextReader): number | null {
  const control = reader.takeForm(/c([a-zA-Z])/y)
  if (control !== null) return control[1]!.charCodeAt(0) % 32
  if (reader.takeForm(/0(?!\d)/y) !== null) return 0
  const pair = reader.takeForm(SURROGATES)
  if (pair !== null) {
    const [high, low] = [Number.parseInt(pair[1]!, 16), Number.parseInt(pair[2]!, 16)]
    return 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
  }
  const found = reader.takeForm(HEXADECIMAL)
  if (found === null) return null
  const point = Number.parseInt(found[1] ?? found[2] ?? found[3]!, 16)
  if (point <= CODE_POINT_MAX) return point
  throw reader.error('a code point above 10FFFF', 'Use a smaller one', found[0].length + 1)
}
