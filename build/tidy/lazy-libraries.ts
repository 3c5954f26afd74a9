/** Libraries that take so long to load that a program imports them only where it needs them. */
import type { Finding, Import, SourceFile } from './source-files.ts'

/** The modules that every command line loads before its command is known. */
const PROGRAMS = ['src/client/main.ts', 'src/server/modes.ts']
/** Modules that do without the slow libraries even where they import on demand. */
const OFFLINE = ['src/client/commands/docs.ts']
const SLOW = /^arktype(\/|$)/

export function lazyFindings(files: readonly SourceFile[]): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const isEager = ({ lazy }: Import): boolean => !lazy
  const starts = [
    ...PROGRAMS.map((program) => [program, isEager] as const),
    ...OFFLINE.map((module) => [module, () => true] as const),
  ]
  return starts.flatMap(([program, isLoaded]) => {
    const chain = chainTo(program, byPath, { visited: new Set(), isLoaded })
    if (chain === null) return []
    return [
      {
        file: program,
        line: chain[0]!.line,
        rule: `loads ${chain.map(({ specifier }) => specifier).join(' -> ')} with every command`,
        replacement: 'await import() it where the first data is read',
      },
    ]
  })
}

interface Search {
  readonly visited: Set<string>
  /** Whether an import counts. */
  readonly isLoaded: (each: Import) => boolean
}

/** The imports from `path` to the slow library; null where there are none. */
function chainTo(
  path: string,
  byPath: ReadonlyMap<string, SourceFile>,
  search: Search,
): readonly Import[] | null {
  const file = byPath.get(path)
  if (file === undefined || search.visited.has(path)) return null
  search.visited.add(path)
  const loaded = file.imports.filter((each) => !each.typeOnly && search.isLoaded(each))
  for (const each of loaded) {
    if (SLOW.test(each.specifier)) return [each]
    const rest = each.path === null ? null : chainTo(each.path, byPath, search)
    if (rest !== null) return [each, ...rest]
  }
  return null
}
