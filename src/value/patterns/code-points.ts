/** Sets of Unicode code points as sorted ranges, neither adjacent nor overlapping. */

export interface Range {
  readonly first: number
  readonly last: number
}
export type CodePoints = readonly Range[]

export const CODE_POINT_MAX = 0x10_ffff

export function toCodePoints(ranges: CodePoints): CodePoints {
  const sorted = ranges.toSorted((a, b) => a.first - b.first)
  const result: Range[] = []
  for (const { first, last } of sorted) {
    const previous = result.at(-1)
    if (previous === undefined || first > previous.last + 1) result.push({ first, last })
    else if (last > previous.last) result.splice(-1, 1, { first: previous.first, last })
  }
  return result
}

export function complementOf(set: CodePoints): CodePoints {
  const result: Range[] = []
  let first = 0
  for (const range of set) {
    if (range.first > first) result.push({ first, last: range.first - 1 })
    first = range.last + 1
  }
  if (first <= CODE_POINT_MAX) result.push({ first, last: CODE_POINT_MAX })
  return result
}

export function hasCodePoint(set: CodePoints, point: number): boolean {
  let low = 0
  let high = set.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (set[middle]!.last < point) low = middle + 1
    else high = middle
  }
  return low < set.length && set[low]!.first <= point
}

/** The sets of `.`, `\d`, `\w` and `\s`, as in ECMAScript. */
const LINE_ENDS = toCodePoints(parseRanges('\n\n\r\r\u2028\u2029'))
export const ANY_BUT_LINE_ENDS = complementOf(LINE_ENDS)
export const DIGITS = toCodePoints(parseRanges('09'))
export const WORD_CHARACTERS = toCodePoints(parseRanges('AZaz09__'))
export const SPACES = toCodePoints(
  parseRanges(
    '\t\r  \u00a0\u00a0\u1680\u1680\u2000\u200a\u2028\u2029\u202f\u202f\u205f\u205f',
  ).concat(parseRanges('\u3000\u3000\ufeff\ufeff')),
)

/** Returns ranges from pairs of characters: the first and the last of each range. */
function parseRanges(pairs: string): Range[] {
  const result: Range[] = []
  for (let i = 0; i < pairs.length; i += 2) {
    result.push({ first: pairs.charCodeAt(i), last: pairs.charCodeAt(i + 1) })
  }
  return result
}
