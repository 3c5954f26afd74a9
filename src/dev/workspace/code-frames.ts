/** Shows lines of source around the location of a failure. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Number of lines that are shown before the location and after it. */
const AROUND = 1
const COLUMNS_MAX = 160
const LOCATION = /((?:[\w@.-]+\/)*[\w.-]+\.[cm]?[jt]sx?):(\d+)(?::(\d+))?/

export interface Location {
  /** Relative to the Workspace. */
  readonly file: string
  /** Counts from 1. */
  readonly line: number
  /** Counts from 1; null for the whole line. */
  readonly column: number | null
}

/** Returns the first location in a text such as a frame of a trace; null if it has none. */
export function findLocation(text: string): Location | null {
  const [, file, line, column] = LOCATION.exec(text) ?? []
  if (file === undefined) return null
  return { file, line: Number(line), column: column === undefined ? null : Number(column) }
}

/** Returns the lines; an empty list if the file is outside of the Workspace, gone or shorter. */
export function codeFrameOfFile(directory: string, location: Location): readonly string[] {
  const { file, line, column } = location
  if (file.split('/').includes('..')) return []
  try {
    return codeFrame(readFileSync(join(directory, file), 'utf8'), line, column)
  } catch {
    return []
  }
}

/**
 * Returns the lines around a location, with a mark below its column if it has one. Both count from
 * 1. Returns an empty list if the text does not have the line.
 */
export function codeFrame(text: string, line: number, column: number | null): readonly string[] {
  const lines = text.split('\n')
  if (line < 1 || line > lines.length) return []
  const first = Math.max(1, line - AROUND)
  const last = Math.min(lines.length, line + AROUND)
  const width = String(last).length
  const frame: string[] = []
  for (let number = first; number <= last; number++) {
    const shown = lines[number - 1]!.slice(0, COLUMNS_MAX).trimEnd()
    const mark = number === line ? '>' : ' '
    frame.push(`${mark} ${String(number).padStart(width)} | ${shown}`.trimEnd())
    if (number !== line || column === null || column > COLUMNS_MAX) continue
    // Tabs stay tabs, so that the mark is below its character in every terminal.
    const indent = shown.slice(0, column - 1).replace(/[^\t]/g, ' ')
    frame.push(`  ${' '.repeat(width)} | ${indent}^`)
  }
  return frame
}
