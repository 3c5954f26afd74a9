/** Circles of imports between files, including those of types. */
import { type Finding, isTest, type SourceFile } from './source-files.ts'

/** Returns a finding for each file that imports itself through other files. */
export function circleFindings(files: readonly SourceFile[]): Finding[] {
  const checked = files.filter(({ path }) => {
    return path.startsWith('src/') && !isTest(path)
  })
  const imports = new Map(
    checked.map((file) => [file.path, file.imports.flatMap(({ path }) => path ?? [])]),
  )
  return checked.flatMap(({ path }) => {
    const circle = circleOf(path, imports)
    if (circle === null) return []
    const replacement = 'move the shared type to the file that owns it'
    return [{ file: path, line: 1, rule: `imports itself: ${circle.join(' -> ')}`, replacement }]
  })
}

/** Returns the shortest way of imports from a file back to itself, or null. */
function circleOf(
  start: string,
  imports: ReadonlyMap<string, readonly string[]>,
): readonly string[] | null {
  const ways = new Map<string, readonly string[]>([[start, [start]]])
  for (const [path, way] of ways) {
    for (const next of imports.get(path) ?? []) {
      if (next === start) return [...way, start]
      if (!ways.has(next)) ways.set(next, [...way, next])
    }
  }
  return null
}
