/** Source maps (ECMA-426): map locations in a bundle to locations in a Workspace. */
import { TraceMap, traceSegment } from '@jridgewell/trace-mapping'

export interface SourceLocation {
  /** A name from `sources`. */
  readonly file: string
  /** Counts from 1. */
  readonly line: number
  /** Counts from 1. */
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
    // The sources are left out, since TraceMap would resolve them as URLs.
    this.#trace = new TraceMap({ version: 3, sources: [], names: [], mappings })
  }

  /** Maps a line and a column, both from 1; returns null if the source is not known. */
  find(line: number, column: number): SourceLocation | null {
    const segment = traceSegment(this.#trace, line - 1, column - 1)
    if (segment === null || segment.length === 1) return null
    const [, source, sourceLine, sourceColumn] = segment
    const file = this.#sources[source]
    return file === undefined ? null : { file, line: sourceLine + 1, column: sourceColumn + 1 }
  }
}
