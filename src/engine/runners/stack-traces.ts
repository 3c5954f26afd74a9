/** Maps locations in a Release's script, as a runner reports them, to the author's sources. */
import { decodedMappings, TraceMap, traceSegment } from '@jridgewell/trace-mapping'

interface SourceMap {
  readonly sources: readonly string[]
  readonly trace: TraceMap
}

const FRAME = /^(.*?)release\.js:(\d+):(\d+)(.*)$/
const FRAMES_MAX = 64
/** Characters of a map that is read at all. */
const MAP_CHARACTERS_MAX = 4 * 1024 * 1024
/**
 * Lines and segments of a map that is decoded, each to an array. A map of 4 MiB that an author's
 * code led to has fewer; one made of separators would keep the server for half a second and take
 * 300 MiB, and takes 90 MiB at most with this bound.
 */
const ENTRIES_MAX = 1_000_000
const SOURCE_CHARACTERS_MAX = 256

/**
 * `stack` has one frame per line. Frames that the map does not know stay as they are, and so do all
 * frames if the map is absent or damaged: an operator published it, so it is not trusted.
 */
export function mapStack(stack: string, sourceMapText: string | null): string {
  const map = sourceMapText === null || stack === '' ? null : parseSourceMap(sourceMapText)
  const frames = stack.split('\n').slice(0, FRAMES_MAX)
  return withoutRepeats(map === null ? frames : frames.map((frame) => mapFrame(frame, map)))
}

/** Joins frames. Equal ones in a row, as of a recursion, become one line with their count. */
function withoutRepeats(frames: readonly string[]): string {
  const lines: string[] = []
  for (let i = 0; i < frames.length; ) {
    const frame = frames[i]!
    let end = i + 1
    while (frames[end] === frame) end++
    lines.push(end - i === 1 ? frame : `${frame} (${end - i} times)`)
    i = end
  }
  return lines.join('\n')
}

function mapFrame(frame: string, { sources, trace }: SourceMap): string {
  const [, before, line, column, after] = FRAME.exec(frame) ?? []
  if (line === undefined) return frame
  // Lines and columns of traces begin at 1, columns of the map at 0.
  const segment = traceSegment(trace, Number(line) - 1, Number(column) - 1)
  // A segment of one number says that the code from there on has no source.
  if (segment === null || segment.length === 1) return frame
  const [, source, sourceLine, sourceColumn] = segment
  const name = sources[source]
  return name === undefined
    ? frame
    : `${before}${name}:${sourceLine + 1}:${sourceColumn + 1}${after}`
}

let last: { readonly text: string; readonly map: SourceMap | null } | null = null

/** Keeps the most recently used map decoded: failures of one Function come in rows. */
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
    if (countEntries(mappings) > ENTRIES_MAX) return null
    const names = sources.map((source: string) => source.slice(0, SOURCE_CHARACTERS_MAX))
    // Without the sources, which would be read as URLs.
    const trace = new TraceMap({ version: 3, sources: [], names: [], mappings })
    // Decoded here, where a failure is caught, and not at the first frame.
    decodedMappings(trace)
    return { sources: names, trace }
  } catch {
    return null
  }
}

const SEMICOLON = 0x3b
const COMMA = 0x2c

function countEntries(mappings: string): number {
  let found = 1
  for (let i = 0; i < mappings.length; i++) {
    const code = mappings.charCodeAt(i)
    if (code === COMMA || code === SEMICOLON) found += 1
  }
  return found
}
