/** Places in a Release's script, as a runner reports them, to places in the author's sources. */

interface SourceMap {
  readonly sources: readonly string[]
  /** For each line of the script, and for the end, the number of its first segment. */
  readonly lines: Int32Array
  /** Four numbers each, by ascending column: column, source, its line, its column. */
  readonly segments: Int32Array
}

const FRAME = /^(.*?)release\.js:(\d+):(\d+)(.*)$/
const FRAMES_MAX = 64
/** Characters of a map that is read at all: one of this size keeps the server for 60 ms. */
const MAP_CHARACTERS_MAX = 4 * 1024 * 1024
const SOURCE_CHARACTERS_MAX = 256
const SEGMENT_NUMBERS = 4

/**
 * `stack` has one frame a line. A frame that the map does not know stays as it is, and so does all
 * where the map is absent or damaged: it was published, so it is not to be believed.
 */
export function mapStack(stack: string, sourceMapText: string | null): string {
  const map = sourceMapText === null || stack === '' ? null : parseSourceMap(sourceMapText)
  if (map === null) return stack
  return stack
    .split('\n')
    .slice(0, FRAMES_MAX)
    .map((frame) => mapFrame(frame, map))
    .join('\n')
}

function mapFrame(frame: string, map: SourceMap): string {
  const [, before, line, column, after] = FRAME.exec(frame) ?? []
  if (line === undefined) return frame
  // Lines and columns of traces begin at 1, columns of the map at 0.
  const at = segmentAt(map, Number(line) - 1, Number(column) - 1)
  const [, source = -1, sourceLine = 0, sourceColumn = 0] = at
  const name = map.sources[source]
  return name === undefined
    ? frame
    : `${before}${name}:${sourceLine + 1}:${sourceColumn + 1}${after}`
}

/** The last segment of the line that begins at the column or before; empty without one. */
function segmentAt({ lines, segments }: SourceMap, line: number, column: number): Int32Array {
  const first = lines[line] ?? 0
  for (let i = (lines[line + 1] ?? 0) - 1; i >= first; i--) {
    const from = i * SEGMENT_NUMBERS
    if (segments[from]! <= column) return segments.subarray(from, from + SEGMENT_NUMBERS)
  }
  return segments.subarray(0, 0)
}

let last: { readonly text: string; readonly map: SourceMap | null } | null = null

/** The map that was used last stays decoded: failures of one Function come in rows. */
function parseSourceMap(text: string): SourceMap | null {
  if (last?.text !== text) last = { text, map: decodeSourceMap(text) }
  return last.map
}

function decodeSourceMap(text: string): SourceMap | null {
  if (text.length > MAP_CHARACTERS_MAX) return null
  try {
    const { sources, mappings } = JSON.parse(text) as Record<string, unknown>
    if (!Array.isArray(sources) || typeof mappings !== 'string') return null
    if (!sources.every((source) => typeof source === 'string')) return null
    const names = sources.map((source: string) => source.slice(0, SOURCE_CHARACTERS_MAX))
    return { sources: names, ...decodeMappings(mappings) }
  } catch {
    return null
  }
}

const SEMICOLON = 0x3b
const COMMA = 0x2c
/** Values of the characters of base64; 0 for any other. */
const DIGITS = new Uint8Array(128)
for (const [i, character] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
].entries()) {
  DIGITS[character.charCodeAt(0)] = i
}

/**
 * Source map revision 3: base64 VLQ numbers, each relative to the one before it. It is read into
 * two plain arrays, since a list for every line and segment takes a hundred times the text.
 */
function decodeMappings(mappings: string): Pick<SourceMap, 'lines' | 'segments'> {
  const lines = new Int32Array(count(mappings, SEMICOLON) + 2)
  const segments = new Int32Array((count(mappings, COMMA) + lines.length) * SEGMENT_NUMBERS)
  const now = new Int32Array(SEGMENT_NUMBERS)
  let line = 0
  let found = 0
  for (let at = 0; at <= mappings.length; at++) {
    const first = at
    let numbers = 0
    let value = 0
    let shift = 0
    let code = mappings.charCodeAt(at)
    for (; at < mappings.length && code !== COMMA && code !== SEMICOLON; ) {
      const digit = DIGITS[code] ?? 0
      value |= (digit & 31) << shift
      if ((digit & 32) !== 0) shift += 5
      else {
        const change = (value & 1) === 1 ? -(value >>> 1) : value >>> 1
        if (numbers < SEGMENT_NUMBERS) now[numbers] = now[numbers]! + change
        numbers += 1
        value = 0
        shift = 0
      }
      code = mappings.charCodeAt(++at)
    }
    // One of a single number says only that nothing is known from there on.
    if (at > first && numbers >= SEGMENT_NUMBERS) segments.set(now, found++ * SEGMENT_NUMBERS)
    if (code === SEMICOLON) {
      line += 1
      lines[line] = found
      now[0] = 0
    }
  }
  lines[line + 1] = found
  return { lines, segments: segments.subarray(0, found * SEGMENT_NUMBERS) }
}

function count(text: string, code: number): number {
  let found = 0
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === code) found += 1
  return found
}
