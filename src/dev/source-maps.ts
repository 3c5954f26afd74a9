/** Source maps (ECMA-426): positions in a bundle back to positions in the files of a Workspace. */
import { TraceMap, traceSegment } from '@jridgewell/trace-mapping'

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

export class SourceMap {
  readonly #sources: readonly string[]
  readonly #trace: TraceMap

  constructor({ sources, mappings }: SourceMapJson) {
    this.#sources = sources
    // Without the sources, which would be read as URLs.
    this.#trace = new TraceMap({ version: 3, sources: [], names: [], mappings })
  }

  /** Both from 1; null where no source is known for the position. */
  find(line: number, column: number): Place | null {
    const segment = traceSegment(this.#trace, line - 1, column - 1)
    if (segment === null || segment.length === 1) return null
    const [, source, sourceLine, sourceColumn] = segment
    const file = this.#sources[source]
    return file === undefined ? null : { file, line: sourceLine + 1, column: sourceColumn + 1 }
  }
}
