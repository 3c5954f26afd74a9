/** Places in a Release's script, as a runner reports them, to places in the author's sources. */

interface Segment {
  readonly column: number
  readonly source: number
  readonly sourceLine: number
  readonly sourceColumn: number
}

interface SourceMap {
  readonly sources: readonly string[]
  /** Of each line of the script, by ascending column. */
  readonly lines: readonly (readonly Segment[])[]
}

const FRAME = /^(.*?)release\.js:(\d+):(\d+)(.*)$/
const FRAMES_MAX = 64

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

function mapFrame(frame: string, { sources, lines }: SourceMap): string {
  const [, before, line, column, after] = FRAME.exec(frame) ?? []
  if (line === undefined) return frame
  // Lines and columns of traces begin at 1, columns of the map at 0.
  const segments = lines[Number(line) - 1] ?? []
  const found = segments.findLast((segment) => segment.column <= Number(column) - 1)
  const source = found === undefined ? undefined : sources[found.source]
  if (found === undefined || source === undefined) return frame
  return `${before}${source}:${found.sourceLine + 1}:${found.sourceColumn + 1}${after}`
}

let last: { readonly text: string; readonly map: SourceMap | null } | null = null

/** The map that was used last stays decoded: failures of one Function come in rows. */
function parseSourceMap(text: string): SourceMap | null {
  if (last?.text !== text) last = { text, map: decodeSourceMap(text) }
  return last.map
}

function decodeSourceMap(text: string): SourceMap | null {
  try {
    const { sources, mappings } = JSON.parse(text) as Record<string, unknown>
    if (!Array.isArray(sources) || typeof mappings !== 'string') return null
    if (!sources.every((source) => typeof source === 'string')) return null
    return { sources, lines: decodeMappings(mappings) }
  } catch {
    return null
  }
}

const DIGITS = new Map(
  [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].map((c, i) => [c, i]),
)

/** Source map revision 3: base64 VLQ numbers, each relative to the one before it. */
function decodeMappings(mappings: string): Segment[][] {
  let source = 0
  let sourceLine = 0
  let sourceColumn = 0
  return mappings.split(';').map((line) => {
    let column = 0
    const segments: Segment[] = []
    for (const piece of line.split(',')) {
      const [columns = 0, sources, lines = 0, sourceColumns = 0] = decodeNumbers(piece)
      column += columns
      if (sources === undefined) continue
      source += sources
      sourceLine += lines
      sourceColumn += sourceColumns
      segments.push({ column, source, sourceLine, sourceColumn })
    }
    return segments
  })
}

function decodeNumbers(piece: string): number[] {
  const numbers: number[] = []
  let value = 0
  let shift = 0
  for (const char of piece) {
    const digit = DIGITS.get(char) ?? 0
    value += (digit & 31) << shift
    if ((digit & 32) !== 0) shift += 5
    else {
      numbers.push((value & 1) === 1 ? -(value >>> 1) : value >>> 1)
      value = 0
      shift = 0
    }
  }
  return numbers
}
