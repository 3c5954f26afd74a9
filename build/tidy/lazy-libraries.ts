/** The rule that slow libraries are imported on demand, not when a program starts. */
import type { Finding, Import, SourceFile } from './source-files.ts'

/** The modules that every command loads before it is known which one it is. */
const PROGRAMS = ['src/client/main.ts', 'src/server/modes.ts']
const SLOW = /^arktype(\/|$)/

export function lazyFindings(files: readonly SourceFile[]): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  return PROGRAMS.flatMap((program) => {
    const chain = chainTo(program, byPath, new Set())
    if (chain === null) return []
    return [
      {
        file: program,
        line: chain[0]!.line,
        rule: `loads ${chain.map(({ specifier }) => specifier).join(' -> ')} with every command`,
        replacement: 'load it with await import() where it is first needed',
      },
    ]
  })
}

/** Returns the chain of imports from `path` to a slow library; null if there is none. */
function chainTo(
  path: string,
  byPath: ReadonlyMap<string, SourceFile>,
  visited: Set<string>,
): readonly Import[] | null {
  const file = byPath.get(path)
  if (file === undefined || visited.has(path)) return null
  visited.add(path)
  for (const each of file.imports.filter(({ typeOnly, lazy }) => !typeOnly && !lazy)) {
    if (SLOW.test(each.specifier)) return [each]
    const rest = each.path === null ? null : chainTo(each.path, byPath, visited)
    if (rest !== null) return [each, ...rest]
  }
  return null
}
