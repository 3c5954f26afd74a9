/** Lines of source around the location of a problem. */

/** Lines that are shown before and after the named one. */
const AROUND = 1
const COLUMNS_MAX = 160

/** Returns the lines around a location, with a mark below its column; both count from 1. */
export function codeFrame(text: string, line: number, column: number): readonly string[] {
  const lines = text.split('\n')
  const first = Math.max(1, line - AROUND)
  const last = Math.min(lines.length, line + AROUND)
  const width = String(last).length
  const frame: string[] = []
  for (let number = first; number <= last; number++) {
    const shown = lines[number - 1]!.slice(0, COLUMNS_MAX).trimEnd()
    const mark = number === line ? '>' : ' '
    frame.push(`${mark} ${String(number).padStart(width)} | ${shown}`.trimEnd())
    if (number !== line || column > COLUMNS_MAX) continue
    // Tabs stay, so that the mark is below its character in every terminal.
    const indent = shown.slice(0, column - 1).replace(/[^\t]/g, ' ')
    frame.push(`  ${' '.repeat(width)} | ${indent}^`)
  }
  return frame
}
