/** The documents: links, sample commands, sample files, titles and sizes. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { COMMANDS } from '../src/client/main.ts'
import { DOCUMENTS } from '../src/docs/embedded.generated.ts'
import { readJwtProviders } from '../src/settings/jwt-providers.ts'
import { readOidcConfig } from '../src/settings/oidc.ts'
import {
  anchors,
  codeBlocks,
  inlineCode,
  type MarkdownFile,
  readMarkdown,
  relativeLinks,
} from '../testing/markdown/markdown.ts'
import { shellCommands } from '../testing/markdown/shell-commands.ts'
import { DECISIONS, readRecords } from './docs/decisions.ts'
import { limitText, parseLimits } from './docs/limits.ts'
import { between } from './docs/markdown.ts'
import { DOCS, readGuides } from './embed-docs.ts'
import { isMode, reasonAgainst } from './samples/programs.ts'
import { VAGUE_SUBJECTS } from './tidy/language-rules.ts'

const ROOT = join(import.meta.dirname, '..')
const README_LINES_MAX = 200
const files = readMarkdown(ROOT)
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Names each broken link as `file: target`. */
function brokenLinks({ path, text }: MarkdownFile): string[] {
  const broken = relativeLinks(text).filter((link) => {
    const [target = '', anchor] = link.split('#')
    const file = target === '' ? path : posix.join(posix.dirname(path), target)
    if (!existsSync(join(ROOT, file))) return true
    return anchor !== undefined && !anchors(read(file)).includes(anchor)
  })
  return broken.map((link) => `${path}: ${link}`)
}

/** Names each sample that the programs reject, with the reason. */
function wrongCommands({ path, text }: MarkdownFile): string[] {
  const blocks = codeBlocks(text).filter(({ language }) => language === 'sh')
  return blocks.flatMap((block) =>
    shellCommands(block.text).flatMap(([program, ...words]) => {
      const reason = reasonAgainst(program!, words)
      return reason === null ? [] : [`${path}: ${program} ${words.join(' ')}: ${reason}`]
    }),
  )
}

/** Names each command or option in the prose that does not exist; it need not be complete. */
function unknownCommands({ path, text }: MarkdownFile): string[] {
  return inlineCode(text).flatMap((code) => {
    const [program, ...words] = shellCommands(code)[0] ?? []
    const isCommand = /^[a-z]/.test(words[0] ?? '')
    if (!isCommand || (program !== 'svc' && program !== 'svc-server')) return []
    const known = program === 'svc' ? isKnown(words) : isMode(words)
    return known ? [] : [`${path}: ${code}`]
  })
}

function isKnown(words: readonly string[]): boolean {
  const names = [3, 2, 1].map((count) => words.slice(0, count).join(' '))
  const command = names
    .map((name) => COMMANDS.find((known) => known.name === name))
    .find((found) => found !== undefined)
  if (command === undefined) {
    return COMMANDS.some(({ name }) => name.startsWith(`${words.join(' ')} `))
  }
  const options = words.filter((word) => word.startsWith('--')).map((word) => word.slice(2))
  const known = [...Object.keys(command.options), 'json', 'help']
  return options.every((option) => known.includes(option))
}

test('README.md is short', () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
})

test('a TypeScript sample of README.md is code of the first Workspace', () => {
  const template = read('src/sdk/templates/chat/functions/messages.ts')
  const samples = codeBlocks(read('README.md')).filter(({ language }) => language === 'ts')
  expect(samples.length).toBeGreaterThan(0)
  for (const { text } of samples) expect(template).toContain(text)
})

test('every link between documents resolves', () => {
  expect(files.length).toBeGreaterThan(70)
  expect(files.flatMap(brokenLinks)).toEqual([])
})

test('a broken link and a broken anchor are found', () => {
  const text = '# A\n\n[one](none.md) [two](#b) [three](#a) [four](https://example.com/x)\n'
  expect(brokenLinks({ path: 'README.md', text: `${read('README.md')}\n${text}` })).toEqual([
    'README.md: none.md',
    'README.md: #b',
    'README.md: #a',
  ])
})

test('a document of svc docs links only to documents of svc docs', () => {
  const topics = Object.keys(DOCUMENTS).map((topic) => `${topic}.md`)
  for (const [topic, text] of Object.entries(DOCUMENTS)) {
    const others = relativeLinks(text).map((link) => link.split('#')[0]!)
    const elsewhere = others.filter((target) => target !== '' && !topics.includes(target))
    expect(elsewhere, topic).toEqual([])
  }
})

/** A file of Workspaces that has the name of no source file, unlike the others. */
const OF_WORKSPACES = 'http.ts'

test('every source file that a document of the source names exists', () => {
  const sources = ['src', 'build', 'testing', 'bench', 'e2e'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
      (name) => `/${folder}/${name.replaceAll('\\', '/')}`,
    ),
  )
  // The documents of the templates name files of a Workspace.
  const others = ['README.md', DOCS, 'src/sdk/templates/']
  const describing = files.filter(({ path }) => !others.some((other) => path.startsWith(other)))
  const missing = describing.flatMap(({ path, text }) =>
    inlineCode(text)
      .flatMap((code) => code.split(' '))
      .filter((word) => /^[\w.\-/{},]+\.ts$/.test(word) && word !== OF_WORKSPACES)
      .flatMap(alternatives)
      .filter((word) => !sources.some((source) => source.endsWith(`/${word}`)))
      .map((word) => `${path}: ${word}`),
  )
  expect(missing).toEqual([])
  expect(alternatives('a/{b,c}.ts')).toEqual(['a/b.ts', 'a/c.ts'])
})

/** Expands the braces of a word as a shell does. */
function alternatives(word: string): string[] {
  const [, before = '', inside, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(word) ?? []
  return inside === undefined ? [word] : inside.split(',').map((each) => before + each + after)
}

test('the page of a folder of src names each folder inside it', () => {
  const pages = files.filter(({ path }) => /^src\/(?!decisions\/)[\w-]+\/README\.md$/.test(path))
  expect(pages.map(({ path }) => path)).toContain('src/product/README.md')
  const missing = pages.flatMap(({ path, text }) => {
    const named = inlineCode(text).flatMap(alternatives)
    return readdirSync(join(ROOT, posix.dirname(path)), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .filter(({ name }) => !named.some((word) => word === name || word === `${name}/`))
      .map(({ name }) => `${path}: ${name}`)
  })
  expect(missing).toEqual([])
})

test('every sample command parses', () => {
  const samples = files.flatMap(({ text }) =>
    codeBlocks(text)
      .filter(({ language }) => language === 'sh')
      .flatMap((block) => shellCommands(block.text))
      .filter(([program]) => program === 'svc'),
  )
  expect(samples.length).toBeGreaterThan(40)
  expect(files.flatMap(wrongCommands)).toEqual([])
})

test('every command, mode and option that a document names exists', () => {
  expect(files.flatMap(unknownCommands)).toEqual([])
})

test('no sample names --remote, which is the default', () => {
  const withDefault = /\bsvc [a-z][^`|;&]*--remote\b/g
  const samples = files.flatMap(({ path, text }) =>
    [...text.replace(/\\?\n\s*/g, ' ').matchAll(withDefault)].map(
      ([sample]) => `${path}: ${sample}`,
    ),
  )
  expect(samples).toEqual([])
})

test('a wrong sample is found wherever it stands in a script', () => {
  const script = [
    'export A=1 B="$(svc whoam)" # svc nothing',
    'X=1 svc config set NAME --secrt --remote < file && svc status --remote 2> log |',
    "  grep 'svc no' & svc-server serv",
    'svc call f \'{"a":1}\' --remote --url http://127.0.0.1 \\',
    '  --key-env KEY --target channel:main',
  ].join('\n')
  const text = ['# A', '```sh', script, '```', 'Run `svc staus` or `svc login --cod X`.'].join('\n')
  expect(wrongCommands({ path: 'a.md', text })).toEqual([
    'a.md: svc whoam: Unknown command whoam. Did you mean whoami?',
    'a.md: svc config set NAME --secrt --remote: Unknown option --secrt. Did you mean --secret?',
    'a.md: svc-server serv: no such mode',
  ])
  expect(unknownCommands({ path: 'a.md', text })).toEqual([
    'a.md: svc staus',
    'a.md: svc login --cod X',
  ])
})

describe('sample files of the guides', () => {
  const samples = files.flatMap(({ path, text }) =>
    codeBlocks(text)
      .filter(({ language, above }) => language === 'json' && above.startsWith('<!-- file: '))
      .map(({ above, text: content }) => ({ path, above, content })),
  )
  const readers: Readonly<Record<string, (path: string) => unknown>> = {
    '<!-- file: SERVICE_PRODUCT_AUTH_CONFIG -->': readJwtProviders,
    '<!-- file: SERVICE_PLATFORM_OIDC_CONFIG -->': readOidcConfig,
  }

  test('every sample file names a setting that this test reads', () => {
    expect(samples.map(({ above }) => above).toSorted()).toEqual(Object.keys(readers).toSorted())
  })

  test.each(samples)('the server accepts the sample file of $path', ({ above, content }) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-docs-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'sample.json')
    writeFileSync(file, content, { mode: 0o600 })
    expect(readers[above]?.(file)).toBeTruthy()
  })
})

test('documents name the caller, the operator or the author', () => {
  const found = files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, i) => (VAGUE_SUBJECTS.test(line) ? [`${path}:${i + 1}: ${line}`] : [])),
  )
  expect(found).toEqual([])
})

test('a decision stands in a chapter, with a number of its own and its title', () => {
  expect(readRecords(join(ROOT, DECISIONS)).length).toBeGreaterThan(100)
  const folder = mkdtempSync(join(tmpdir(), 'svc-decisions-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const chapter of ['engine', 'runner']) mkdirSync(join(folder, chapter))
  const file = (path: string, text: string): void => writeFileSync(join(folder, path), text)
  file('runner/0002-b.md', '# 0002. B\n')
  file('engine/0001-a.md', '# 0001. A\n')
  expect(readRecords(folder)).toEqual([
    { chapter: 'engine', number: '0001', file: '0001-a.md', title: 'A' },
    { chapter: 'runner', number: '0002', file: '0002-b.md', title: 'B' },
  ])
  file('engine/0002-c.md', '# 0002. C\n')
  expect(() => readRecords(folder)).toThrow('two records have the number 0002')
  file('engine/0002-c.md', '# 0003. C\n')
  expect(() => readRecords(folder)).toThrow('begins with another number')
  rmSync(join(folder, 'engine/0002-c.md'))
  file('0004-d.md', '# 0004. D\n')
  expect(() => readRecords(folder)).toThrow('is not a chapter')
})

test('every Markdown file of the folder is a topic, and none of the contract is', () => {
  const names = files.map(({ path }) => path).filter((path) => posix.dirname(path) === DOCS)
  expect(names).toEqual(Object.keys(DOCUMENTS).map((topic) => `${DOCS}/${topic}.md`))
  expect(Object.keys(readGuides(ROOT))).toContain('operations')
})

test('a limit is read from the docstring of its constant, with the unit of its name', () => {
  const text = [
    '/**',
    ' * Why.',
    ' * @limit Calls: one',
    ' *   call',
    ' */',
    'export const A_MAX = 1',
  ]
  expect(parseLimits('src/a.ts', text.join('\n'))).toEqual([
    { path: 'src/a.ts', constant: 'A_MAX', section: 'Calls', what: 'one call' },
  ])
  expect(() => parseLimits('src/a.ts', '/** @limit Calls: one */\nconst A_MAX = 1')).toThrow(
    /exported/,
  )
  expect(() => parseLimits('src/a.ts', '/** @limit one */\nexport const A = 1')).toThrow(/SECTION/)
  const shown = [
    limitText('CALLS_MAX', 4_096),
    limitText('BODY_BYTES_MAX', 16 * 1024),
    limitText('BYTES_READ_MAX', 2 ** 31),
    limitText('KEY_BYTES', 2_560),
    limitText('PACE_BYTES_PER_SECOND_MIN', 1024),
    limitText('TEXT_CHARACTERS_MAX', 8_192),
    limitText('WAIT_MILLIS', 1_500),
    limitText('LIFETIME_MICROS', 86_400_000_000n),
    limitText('KEPT_MS', 2 * 86_400_000),
    limitText('A_LIMIT', { perSecond: 2_000, burst: 4_000 }),
  ]
  expect(shown).toEqual([
    '4,096',
    '16 KiB',
    '2 GiB',
    '2,560 bytes',
    '1 KiB per second',
    '8,192 characters',
    '1,500 ms',
    '24 h',
    '2 d',
    '2,000 per second, 4,000 at once',
  ])
})

test('each row of the limits names the file that defines the limit', () => {
  const rows = read(`${DOCS}/limits.md`).match(/^\| [^|]+ \| .* \|$/gm)!
  const limits = rows.filter((row) => !row.startsWith('| What |'))
  expect(limits.length).toBeGreaterThan(50)
  for (const row of limits) {
    const path = /\| `(src\/[^`]+\.ts)` \|$/.exec(row)?.[1]
    expect(path, row).toBeDefined()
    expect(read(path!), row).toContain('@limit')
  }
})

test('a generated part stands between its marks, which may not be lost', () => {
  const text = 'a\n<!-- rows: from x -->\nold\n<!-- /rows -->\nb\n'
  const current = 'a\n<!-- rows: from x -->\nnew\n<!-- /rows -->\nb\n'
  expect(between(text, 'rows', 'new\n')).toBe(current)
  expect(() => between(text.replace('/rows', 'rows'), 'rows', '')).toThrow(/marks/)
  expect(() => between(text.replace('rows: ', ''), 'rows', '')).toThrow(/marks/)
})
