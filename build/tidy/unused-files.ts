/** Finds files that neither the executable, the packed client, a script nor a test uses. */
import { type Finding, isTest, type SourceFile } from './source-files.ts'

const ENTRIES = ['src/main.ts', 'src/client/main.ts']

export function unusedFindings(
  files: readonly SourceFile[],
  scripts: Readonly<Record<string, string>>,
): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const reached = new Set<string>()
  const queue = files.map((file) => file.path).filter((path) => isEntry(path, scripts))
  while (queue.length > 0) {
    const path = queue.pop()!
    const file = byPath.get(path)
    if (file === undefined || reached.has(path)) continue
    reached.add(path)
    for (const each of file.imports) if (each.path !== null) queue.push(each.path)
    if (/^(?:build|testing|bench)\//.test(path)) queue.push(...named(file, files))
  }
  return files
    .filter((file) => !reached.has(file.path))
    .map((file) => ({
      file: file.path,
      line: 1,
      rule: 'the file is unused',
      replacement: 'remove it, or use it',
    }))
}

function isEntry(path: string, scripts: Readonly<Record<string, string>>): boolean {
  if (
    ENTRIES.includes(path) ||
    (isTest(path) && !path.endsWith('-suite.ts')) ||
    /^build\/embed-[^/]+$/.test(path)
  )
    return true
  // Templates are read as files of a Workspace.
  if (path.startsWith('src/sdk/templates/')) return true
  const bootstrapped = ['build/quickstart.ts', 'testing/global-setup.ts']
  if (bootstrapped.includes(path) || path === 'build/bun-channel.ts') return true
  return Object.values(scripts).some((script) => script.includes(path))
}

/** Returns the files that a build script names, itself or their folder, to embed them as text. */
function named(file: SourceFile, files: readonly SourceFile[]): string[] {
  const text = file.strings.join('\n')
  return files
    .map((each) => each.path)
    .filter((path) => {
      const folder = path.slice(0, path.lastIndexOf('/'))
      return text.includes(path) || (folder.split('/').length > 1 && text.includes(folder))
    })
}
