/** Source maps (ECMA-426): positions in a bundle back to positions in the files of a Workspace. */

export interface Place {
  /** A name from `sources`. */
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
}

export interface SourceMapJson {
  readonly version: 3
  readonly sources: readonly string[]
  readonly names: readonly string[]
  readonly mappings: string
}

interface Segment {
  readonly generatedColumn: number
  readonly source: number
  readonly line: number
  readonly column: number
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const DIGITS = new Int8Array(128).fill(-1)
for (const [i, character] of [...ALPHABET].entries()) DIGITS[character.charCodeAt(0)] = i

export class SourceMap {
  readonly #sources: readonly string[]
  readonly #lines: readonly (readonly Segment[])[]

  constructor(json: SourceMapJson) {
    this.#sources = json.sources
    this.#lines = decodeMappings(json.mappings)
  }

  /** Both from 1; null where nothing was mapped at or before the column. */
  find(line: number, column: number): Place | null {
    const segments = this.#lines[line - 1] ?? []
    let [low, high] = [0, segments.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (segments[middle]!.generatedColumn < column) low = middle + 1
      else high = middle
    }
    const segment = segments[low - 1]
    const file = segment === undefined ? undefined : this.#sources[segment.source]
    if (segment === undefined || file === undefined) return null
    return { file, line: segment.line + 1, column: segment.column + 1 }
  }
}

function decodeMappings(mappings: string): Segment[][] {
  const lines: Segment[][] = []
  let [source, line, column] = [0, 0, 0]
  for (const group of mappings.split(';')) {
    const segments: Segment[] = []
    let generatedColumn = 0
    for (const text of group === '' ? [] : group.split(',')) {
      const fields = decodeNumbers(text)
      generatedColumn += fields[0] ?? 0
      if (fields.length < 4) continue
      source += fields[1]!
      line += fields[2]!
      column += fields[3]!
      segments.push({ generatedColumn, source, line, column })
    }
    lines.push(segments)
  }
  return lines
}

/** Base 64 VLQ: five bits a digit, the sixth says that more follow; the lowest is the sign. */
function decodeNumbers(text: string): number[] {
  const numbers: number[] = []
  let [value, shift] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const digit = DIGITS[text.charCodeAt(i)] ?? -1
    value += (digit & 31) << shift
    shift += 5
    if (digit & 32) continue
    numbers.push(value & 1 ? -(value >> 1) : value >> 1)
    value = 0
    shift = 0
  }
  return numbers
}
