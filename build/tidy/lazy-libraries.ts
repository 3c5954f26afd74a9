/** The rule that slow libraries are imported on demand, not when a program starts. */
import type { Finding, Import, SourceFile } from './source-files.ts'

/** The modules that every command loads before it is known which one it is. */
const PROGRAMS = ['src/client/main.ts', 'src/server/modes.ts']
/** Loads the server itself, whose start must not pay for a feature that is off. */
const SERVER = 'src/server/composition.ts'
/** Modules that may not load the slow libraries, not even on demand. */
const OFFLINE = ['src/client/commands/docs.ts']
const SLOW = /^(arktype|@modelcontextprotocol\/sdk)(\/|$)/
const OPTIONAL = /^(@opentelemetry\/|acme-client(\/|$))/

export function lazyFindings(files: readonly SourceFile[]): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const isEager = ({ lazy }: Import): boolean => !lazy
  const starts = [
    ...PROGRAMS.map((program) => [program, isEager, SLOW] as const),
    ...OFFLINE.map((module) => [module, () => true, SLOW] as const),
    [SERVER, isEager, OPTIONAL] as const,
  ]
  return starts.flatMap(([program, isLoaded, slow]) => {
    const chain = chainTo(program, byPath, { visited: new Set(), isLoaded, slow })
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

interface Search {
  readonly visited: Set<string>
  /** Returns whether an import counts. */
  readonly isLoaded: (each: Import) => boolean
  readonly slow: RegExp
}

/** Returns the chain of imports from `path` to a slow library; null if there is none. */
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
    if (search.slow.test(each.specifier)) return [each]
    const rest = each.path === null ? null : chainTo(each.path, byPath, search)
    if (rest !== null) return [each, ...rest]
  }
  return null
}
