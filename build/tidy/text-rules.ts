/** Limits of size, and text that is allowed in few files or none, each with its replacement. */
import { type Finding, isGenerated, isTest, type SourceFile } from './source-files.ts'

const FILE_LINES_MAX = 500
const FUNCTION_LINES_MAX = 90
const COLUMNS_MAX = 100
const FOLDER_FILES_MAX = 25

/** Files that stay whole: tables without logic, and types that ship as one file. */
const TABLES = ['src/errors/codes.ts', 'src/sdk/svc.d.ts']

interface Ban {
  readonly text: RegExp
  /** The part of a file that is searched for the text. */
  readonly within: 'code' | 'strings' | 'all'
  readonly rule: string
  readonly replacement: string
  readonly allowed: (path: string) => boolean
}

const below =
  (...prefixes: readonly string[]) =>
  (path: string): boolean =>
    prefixes.some((prefix) => path.startsWith(prefix))

const tools = below('build/', 'testing/', 'bench/', 'e2e/')
const nowhere = (): boolean => false
/** Returns whether a file ships. Tests and tools do not. */
const shipped = (path: string): boolean => path.startsWith('src/') && !isTest(path)
const outsideShipped =
  (allowed: (path: string) => boolean) =>
  (path: string): boolean =>
    !shipped(path) || allowed(path)

const BANS: readonly Ban[] = [
  {
    text: /\bprocess\.env\b/,
    within: 'code',
    rule: 'process.env',
    replacement:
      'take the value from src/settings, src/client/process-environment.ts or src/main.ts',
    allowed: (path) =>
      tools(path) ||
      isTest(path) ||
      below('src/settings/', 'src/client/process-environment.ts', 'src/main.ts')(path) ||
      // A module of its own in the process of an author's test.
      path === 'src/test-kit/process-settings.ts',
  },
  {
    text: /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b/,
    within: 'code',
    rule: 'the clock or randomness of the process',
    replacement: 'take System (src/system/system.ts)',
    allowed: outsideShipped(
      below(
        'src/system/',
        'src/runner/',
        'src/sdk/',
        'src/app-client/platform.ts',
        'src/console/clock.ts',
      ),
    ),
  },
  {
    text: /\bnow\(\)|\bcurrent_timestamp\b|\bdatetime\('now'/i,
    within: 'strings',
    rule: 'SQL reads its own clock',
    replacement: 'pass the time as a parameter',
    allowed: outsideShipped(
      (path) => !below('src/database/', 'src/documents/', 'src/storage/')(path),
    ),
  },
  {
    text: /\bconsole\./,
    within: 'code',
    rule: 'console',
    replacement: 'log through telemetry, or write through the output of the command',
    allowed: outsideShipped(
      below('src/telemetry/', 'src/client/output.ts', 'src/server/', 'src/runner/', 'src/sdk/'),
    ),
  },
  {
    text: /\bas any\b|[:<,]\s*any\b(?!\()/,
    within: 'code',
    rule: 'any',
    replacement: 'unknown and a check',
    allowed: nowhere,
  },
  {
    text: /^\s*export default\b/,
    within: 'code',
    rule: 'a default export',
    replacement: 'export it by name',
    allowed: below('src/sdk/templates/'),
  },
  {
    text: /\bthrow new Error\b/,
    within: 'code',
    rule: 'throw new Error',
    replacement: 'Fault with a code of codes.ts, ValidationError, or assert',
    allowed: outsideShipped(below('src/sdk/', 'src/runner/')),
  },
  {
    text: /\bpool\.query\b/,
    within: 'code',
    rule: 'pool.query',
    replacement:
      'transaction() or read() of src/database: a pool may change connections in between',
    allowed: below('bench/'),
  },
  {
    text: /\b(?:FIXME|TODO|XXX)\b/,
    within: 'all',
    rule: 'a note to do it later',
    replacement: 'do it, or open an issue',
    allowed: below('build/tidy/'),
  },
  {
    text: /\b(?:test|it|describe)\.(?:only|skip|todo)\(/,
    within: 'code',
    rule: 'a test that is skipped, or that skips the others',
    replacement: 'run it, or use skipIf with the reason in its name',
    allowed: nowhere,
  },
  {
    text: /\bBun\s*\./,
    within: 'code',
    rule: 'the client runs under Node too',
    replacement: 'the Node API that Bun shares',
    allowed: (path) => !path.startsWith('src/client/') || isTest(path),
  },
  {
    text: /\bstd(?:out|err)\.write\b/,
    within: 'code',
    rule: 'text without escapes for control characters',
    replacement: 'the output of the command (src/client/output.ts)',
    allowed: (path) =>
      !path.startsWith('src/client/') ||
      isTest(path) ||
      below('src/client/output.ts', 'src/client/process-environment.ts')(path),
  },
  {
    text: /(?<![.#\w])fetch\(|\bglobalThis\.fetch\b/,
    within: 'code',
    rule: "the runtime's own fetch, which obeys proxy variables",
    replacement: 'the fetch of the environment (src/client/network)',
    allowed: (path) =>
      !path.startsWith('src/client/') || isTest(path) || below('testing/client/')(path),
  },
  {
    text: /\bsvc\(\[|\[(?:CLIENT|\.\.\.command), /,
    within: 'code',
    rule: 'a command line of svc as a list',
    replacement: 'the tag argv (e2e/argv.ts), which takes it as a user types it',
    allowed: (path) => !path.startsWith('e2e/'),
  },
]

export function textFindings(file: SourceFile): Finding[] {
  if (isGenerated(file.path)) return []
  return [...sizeFindings(file), ...banFindings(file), ...functionFindings(file)]
}

function sizeFindings(file: SourceFile): Finding[] {
  const findings: Finding[] = []
  const count = file.lines.at(-1) === '' ? file.lines.length - 1 : file.lines.length
  if (count > FILE_LINES_MAX && !TABLES.includes(file.path)) {
    findings.push({
      file: file.path,
      line: count,
      rule: `${count} lines, at most ${FILE_LINES_MAX}`,
      replacement: 'split it by noun',
    })
  }
  for (const [i, line] of file.lines.entries()) {
    if (line.length <= COLUMNS_MAX) continue
    // A line that cannot be broken: a URL, a public key, or an import of one name.
    if (/^\s*(?:'[^' ]*'|"[^" ]*"|\/\/ \S+|import .* from '[^']*'),?$/.test(line)) continue
    findings.push({
      file: file.path,
      line: i + 1,
      rule: `${line.length} columns, at most ${COLUMNS_MAX}`,
      replacement: 'break the line',
    })
  }
  return findings
}

function banFindings(file: SourceFile): Finding[] {
  const findings: Finding[] = []
  for (const ban of BANS) {
    if (ban.allowed(file.path)) continue
    const lines = ban.within === 'all' ? file.lines : file[ban.within]
    for (const [i, line] of lines.entries()) {
      if (!ban.text.test(line)) continue
      const { rule, replacement } = ban
      findings.push({ file: file.path, line: i + 1, rule, replacement })
    }
  }
  return findings
}

const CONTROL = /^\s*(?:\} )?(?:if|for|while|switch|catch|else|do|try|return|with)\b/
const FUNCTION_HEAD = /\bfunction\b|=> \{$|^\s*(?:[a-z]+ )*[#\w$[\].]+(?:<.*>)?\(/

/**
 * Finds functions that are too long. The formatter indents the first and the last line of a
 * function equally, so a function ends at the next closing brace with the indent of its head.
 */
export function functionFindings(file: SourceFile): Finding[] {
  if (isTest(file.path)) return []
  const findings: Finding[] = []
  for (const [i, line] of file.code.entries()) {
    if (!line.trimEnd().endsWith('{')) continue
    const indent = line.search(/\S/)
    const head = headOf(file.code, i, indent)
    const text = file.code[head]!.trimEnd()
    if (CONTROL.test(text) && !text.endsWith('=> {')) continue
    if (!FUNCTION_HEAD.test(text) && !(head !== i && /\(\s*$/.test(text))) continue
    let end = i + 1
    while (end < file.code.length && !closes(file.code[end]!, indent)) end += 1
    const length = end - head + 1
    if (length <= FUNCTION_LINES_MAX) continue
    findings.push({
      file: file.path,
      line: head + 1,
      rule: `a function of ${length} lines, at most ${FUNCTION_LINES_MAX}`,
      replacement: 'name its parts',
    })
  }
  return findings
}

/** Returns the first line of a head that spans lines: the last line above with its indent. */
function headOf(code: readonly string[], opening: number, indent: number): number {
  if (!/^\s*\)/.test(code[opening]!)) return opening
  let head = opening - 1
  while (head > 0 && code[head]!.search(/\S/) !== indent) head -= 1
  return head
}

function closes(line: string, indent: number): boolean {
  return line.search(/\S/) === indent && line.trimStart().startsWith('}')
}

/** Finds folders with too many files. Tests are not counted, since their names follow a file's. */
export function folderFindings(files: readonly SourceFile[]): Finding[] {
  const counts = new Map<string, number>()
  for (const file of files.filter((each) => !isTest(each.path))) {
    const folder = file.path.slice(0, file.path.lastIndexOf('/'))
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(([folder, count]) => ({
      file: folder,
      line: 1,
      rule: `${count} files, at most ${FOLDER_FILES_MAX}`,
      replacement: 'move files that belong together into a folder',
    }))
}
