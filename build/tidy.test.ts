/** Checks the conventions of this codebase, as far as a machine can. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { VERSION } from '../src/value/version.ts'
import { readMarkdown } from '../testing/markdown/markdown.ts'
import { longTests, quickTests } from './test-files.mjs'
import { citationFindings, contractHeadings, headingFindings } from './tidy/contract-citations.ts'
import { circleFindings } from './tidy/import-circles.ts'
import { FOLDERS, importFindings, layerOf } from './tidy/import-rules.ts'
import { languageFindings, subjectFindings } from './tidy/language-rules.ts'
import { LAYERS } from './tidy/layers.ts'
import { lazyFindings } from './tidy/lazy-libraries.ts'
import { literalSpreadFindings } from './tidy/literal-spreads.ts'
import { sentenceFindings } from './tidy/sentence-rules.ts'
import { type Finding, isTest, parseSource, readSourceFiles } from './tidy/source-files.ts'
import { folderFindings, functionFindings, textFindings } from './tidy/text-rules.ts'
import { unusedFindings } from './tidy/unused-files.ts'

const ROOT = join(import.meta.dirname, '..')
const files = readSourceFiles(ROOT)
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const documents = readMarkdown(ROOT)
const headings = contractHeadings(documents)
const about = JSON.parse(read('package.json'))

function report(findings: readonly Finding[]): string {
  return findings.map((f) => `${f.file}:${f.line}: ${f.rule} -> ${f.replacement}`).join('\n')
}

test('folders import in one direction, and only owners import their library', () => {
  expect(report(files.flatMap(importFindings))).toBe('')
})

test('no file of src imports itself through others, not even by types', () => {
  expect(report(circleFindings(files))).toBe('')
  const circle = [
    parseSource('src/value/a.ts', "import type { B } from './b.ts'"),
    parseSource('src/value/b.ts', "import { C } from './c.ts'"),
    parseSource('src/value/c.ts', "import { B } from './b.ts'"),
  ]
  expect(circleFindings(circle).map(({ rule }) => rule)).toEqual([
    'imports itself: src/value/b.ts -> src/value/c.ts -> src/value/b.ts',
    'imports itself: src/value/c.ts -> src/value/b.ts -> src/value/c.ts',
  ])
})

test('the import table lists every folder of src', () => {
  const folders = new Set(
    files.filter((f) => f.path.startsWith('src/')).map((f) => f.path.split('/')[1]!),
  )
  expect([...folders].filter((folder) => FOLDERS[folder] === undefined)).toEqual([])
})

test('a folder inside another imports only those below it, types included', () => {
  const below = parseSource('src/engine/commits/x.ts', "import { a } from '../limits.ts'")
  const above = parseSource(
    'src/engine/commits/x.ts',
    "import { a } from './a.ts'\nimport type { B } from '../transactions/b.ts'",
  )
  const unlisted = parseSource('src/runner/sockets/x.ts', "import { a } from '../main.ts'")
  expect(importFindings(below)).toEqual([])
  expect(report(importFindings(above))).toBe(
    'src/engine/commits/x.ts:2: inside engine, commits may not import transactions, which stands ' +
      'above it -> move what both need below commits, or let the caller pass it in',
  )
  expect(report(importFindings(unlisted))).toBe(
    'src/runner/sockets/x.ts:1: src/runner/sockets belongs to no layer -> give it a row of ' +
      'LAYERS.runner in build/tidy/layers.ts',
  )
})

test('the two origins do not import each other', () => {
  const up = parseSource('src/http/management/x.ts', "import { a } from '../application/a.ts'")
  expect(report(importFindings(up))).toBe(
    'src/http/management/x.ts:1: src/http/application/ and src/http/management/ may not import ' +
      'each other -> move what both need into the folder above them',
  )
})

test('every layer has files', () => {
  const sources = files.filter(({ path }) => !isTest(path))
  const empty = Object.entries(LAYERS).flatMap(([folder, layers]) => {
    const used = new Set(sources.map(({ path }) => layerOf(folder, path)))
    return Object.keys(layers).filter((name) => !used.has(name))
  })
  expect(empty).toEqual([])
})

test('no command line loads a slow library before it needs it', () => {
  expect(report(lazyFindings(files))).toBe('')
  const eager = parseSource(
    'src/client/main.ts',
    "import { Login } from '../wire/auth.ts'\nimport { read } from '../wire/reading/read.ts'",
  )
  const others = files.filter((file) => file.path !== eager.path)
  expect(report(lazyFindings([...others, eager]))).toMatch(
    /^src\/client\/main\.ts:2: loads \.\.\/wire\/reading\/read\.ts -> .*arktype/,
  )
  const lazy = parseSource(
    'src/client/commands/docs.ts',
    "export const load = () => import('../../wire/reading/read.ts')",
  )
  expect(report(lazyFindings([...files.filter(({ path }) => path !== lazy.path), lazy]))).toMatch(
    /^src\/client\/commands\/docs\.ts:1: loads .*arktype/,
  )
})

test('files, functions and lines are short and contain no banned text', () => {
  expect(report(files.flatMap(textFindings))).toBe('')
})

test('a command line of svc that is written as a list is found in e2e, but not elsewhere', () => {
  const text = ["await svc(['status'])", 'run([CLIENT, ...args])', 'svc(argv`status`)'].join('\n')
  const found = textFindings(parseSource('e2e/x.test.ts', text))
  expect(found.map(({ line, rule }) => `${line}: ${rule}`)).toEqual([
    '1: a command line of svc as a list',
    '2: a command line of svc as a list',
  ])
  expect(textFindings(parseSource('build/x.ts', text))).toEqual([])
})

test('no literal is spread into another one', () => {
  expect(report(files.flatMap(literalSpreadFindings))).toBe('')
})

test('a literal that is spread is found, and neither a spread call nor a parameter', () => {
  const lines = [
    "const names = [...['a', 'b'], ...['c'].map(upper)]",
    'const fields = {',
    '  ...{ a: 1, b: [2] },',
    '  ...(isOpen && { c: 3 }),',
    '}',
    'function last(...[name, options]: Parameters) {}',
    'const first = (...[name]) => call(...[name])',
  ]
  const found = literalSpreadFindings(parseSource('src/wire/x.ts', lines.join('\n')))
  expect(found.map(({ line }) => line)).toEqual([1, 3, 7])
})

test('docstrings and identifiers use the terms of the field', () => {
  expect(report(files.flatMap(languageFindings))).toBe('')
})

test('sentences of the clean folders have their subjects', () => {
  expect(report(files.flatMap((file) => sentenceFindings(file)))).toBe('')
})

test('a sentence without a subject, a translated phrase and a partial test name are found', () => {
  const text = [
    '/**',
    ' * Whether it runs.',
    ' */',
    "const text = 'is no target'",
    '// It is no target any more, and is no longer one: there is no other.',
    "test('is rejected', () => {})",
    "test.each(['is read'])(",
    "  'with %s it fails',",
    ')',
    "])('that are serial are accepted', () => {})",
    "describe('a Release', () => test('a Release is served', () => {}))",
  ].join('\n')
  const found = sentenceFindings(parseSource('e2e/x.test.ts', text))
  expect(found.map(({ line, rule }) => `${line}: ${rule}`)).toEqual([
    '1: a docstring begins with "Whether"',
    '5: the phrase "is no"',
    '5: the phrase "any more"',
    '6: the name of a test begins with "is"',
    '8: the name of a test begins with "with"',
    '10: the name of a test begins with "that"',
  ])
  expect(sentenceFindings(parseSource('elsewhere/x.test.ts', text))).toEqual([])
})

test('commit subjects are an area and an imperative summary', () => {
  expect(subjectFindings(ROOT)).toEqual([])
})

test('a docstring without a subject, an invented term and a vague subject are found', () => {
  const text = ['/** Of the caller. */', 'const culprit = 1', '// whoever asks'].join('\n')
  const rules = languageFindings(parseSource('src/engine/x.ts', text)).map((each) => each.rule)
  expect(rules).toEqual([
    'a docstring begins with "Of"',
    'culprit is an invented term',
    '"whoever" names no subject',
  ])
})

test('every citation of the contract names one of its files and a heading of it', () => {
  expect([...headings.keys()]).toEqual(['application.md', 'management.md', 'wire.md'])
  expect(report(headingFindings(headings))).toBe('')
  const sources = files.map(({ path, lines }) => ({ path, text: lines.join('\n') }))
  const found = [...sources, ...documents].flatMap((file) => citationFindings(file, headings))
  expect(report(found)).toBe('')
})

test('a citation that leads nowhere is found, also one that continues in the next line', () => {
  const text = [
    '/** A bound (contract/management.md, Limits). See [it](docs/contract/none.md). */',
    '/**',
    ' * Rules (contract/application.md, Events; contract/wire.md, Rules of Realtime',
    ' * connections), then (contract/wire.md, Rules of',
    ' * nothing).',
    ' */',
    '// (contract/none.md, Limits), contract/wire.md, Realtime, and',
    '// (see contract/wire.md, Realtime) or (contract/wire.md).',
    '// Bytes (Document 1, Limits; the wire',
    '// decisions, section 4).',
  ].join('\n')
  const found = citationFindings({ path: 'src/value/x.ts', text }, headings)
  expect(found.map(({ line, rule }) => `${line}: ${rule}`)).toEqual([
    '9: "Document 1" is not in the repository',
    '9: "wire decisions" is not in the repository',
    '4: wire.md has no heading "Rules of nothing"',
    '7: the contract has no file none.md',
    '7: a citation of wire.md in another form',
    '8: a citation of wire.md in another form',
    '8: a citation of wire.md in another form',
  ])
  const twice = contractHeadings([{ path: 'src/docs/contract/x.md', text: '# A\n## B\n### B\n' }])
  expect(headingFindings(twice).map(({ rule }) => rule)).toEqual(['"B" cannot be cited'])
})

test('no folder has more files than the limit', () => {
  expect(report(folderFindings(files))).toBe('')
})

test('every file is used', () => {
  expect(report(unusedFindings(files, about.scripts))).toBe('')
})

test('generated files are current', () => {
  const result = spawnSync(process.execPath, ['build/generate.ts', '--check'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect(result.stdout + result.stderr).toBe('')
  expect(result.status).toBe(0)
})

test('package, lock file, changelog and code have the same version', () => {
  expect(VERSION).toBe(about.version)
  expect(read('package-lock.json')).toContain(`"version": "${about.version}"`)
  expect(read('CHANGELOG.md')).toContain(`## ${about.version}`)
})

test('the lock file names no registry', () => {
  expect(read('package-lock.json')).not.toContain('"resolved"')
})

test('a released migration never changes', () => {
  const released: Record<string, string> = JSON.parse(read('migrations/released.json'))
  const changed = Object.entries(released).filter(([path, digest]) => {
    const whole = join(ROOT, path)
    if (!existsSync(whole)) return true
    return createHash('sha256').update(readFileSync(whole)).digest('hex') !== digest
  })
  expect(changed.map(([path]) => path)).toEqual([])
})

test('the parser separates comments, strings, templates and regular expressions from code', () => {
  const text = [
    "import { a } from './a.ts'",
    '// console.log in a comment',
    "const s = 'console.log in a string'",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a program.
    'const t = `console.log ${console.log(1)} console.log`',
    'const r = /console.log["`]/.test(s) // and more',
    "export const b = await import('../b.ts')",
    "import type { C } from 'hono'",
  ].join('\n')
  const file = parseSource('src/wire/x.ts', text)
  const lines = textFindings(file).map((finding) => finding.line)
  expect(lines).toEqual([4])
  expect(file.imports.map((each) => [each.specifier, each.path, each.typeOnly, each.lazy])).toEqual(
    [
      ['./a.ts', 'src/wire/a.ts', false, false],
      ['../b.ts', 'src/b.ts', false, true],
      ['hono', null, true, false],
    ],
  )
  expect(importFindings(file).map((finding) => finding.rule)).toEqual([
    'wire may not import b.ts',
    'hono belongs to http, server, bench',
  ])
})

test('a long function is found in each notation', () => {
  const body = Array.from({ length: 90 }, (_, i) => `  const x${i} = ${i}`)
  const heads = [
    ['function f(a: string): void {'],
    ['export async function f(', '  a: string,', '): Promise<void> {'],
    ['const f = async (a: string): Promise<void> => {'],
    ['  async handle({ app }) {'],
    ['  #f<T>(a: T): T {'],
  ]
  for (const head of heads) {
    const indent = /^ */.exec(head[0]!)![0]
    const file = parseSource('src/wire/x.ts', [...head, ...body, `${indent}}`].join('\n'))
    const rule = `a function of ${90 + head.length + 1} lines, at most 90`
    expect(functionFindings(file).map((finding) => finding.rule)).toEqual([rule])
  }
  const object = parseSource('src/wire/x.ts', ['const table = {', ...body, '}'].join('\n'))
  expect(functionFindings(object)).toEqual([])
})

test('test:long runs every test that does more there', () => {
  expect(about.scripts['test:long']).toBe('SVC_TEST_LONG=1 node build/test.mjs --long')
  const long = longTests(ROOT)
  const readsSetting = /process\.env\.SVC_TEST_LONG\b/
  const longer = files.filter(({ path, code }) => {
    return path.endsWith('.test.ts') && code.some((line) => readsSetting.test(line))
  })
  expect(longer.length).toBeGreaterThan(5)
  expect(longer.filter(({ path }) => !long.includes(path)).map(({ path }) => path)).toEqual([])
  // By its name, and through helpers of tests.
  expect(long).toContain('e2e/upgrades/upgrades.long.test.ts')
  expect(long).toContain('src/documents/sqlite/stores.test.ts')
  expect(long).not.toContain('src/value/ids.test.ts')
})

test('npm test leaves out slow files, and test:all leaves out nothing', () => {
  expect(about.scripts['test:all']).toBe('node build/test.mjs --all')
  const quick = quickTests(ROOT)
  const tests = files.filter(({ path }) => path.endsWith('.test.ts'))
  const tagged = tests.filter(({ lines }) => lines.some((line) => /^\W*@module-tag/.test(line)))
  const slow = tagged.filter(({ lines }) => lines.includes(' * @module-tag slow'))
  expect(slow.length).toBeGreaterThan(100)
  // Another form of the comment would count for the runner alone.
  expect(tagged.filter((each) => !slow.includes(each)).map(({ path }) => path)).toEqual([])
  expect(slow.filter(({ path }) => quick.includes(path))).toEqual([])
  // The tag of a file is that of each of its tests.
  const twice = slow.filter(({ code }) => code.some((line) => line.includes("tags: ['slow']")))
  expect(twice.map(({ path }) => path)).toEqual([])
  expect(quick).toContain('src/value/ids.test.ts')
  expect(quick).not.toContain('e2e/upgrades/upgrades.long.test.ts')
})
