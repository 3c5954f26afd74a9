/**
 * Rules of sentences that a machine can check: openings of docstrings, phrases of comments, and
 * names of tests.
 */
import { type Finding, isGenerated, type SourceFile } from './source-files.ts'

/** The folders with sources and tests. */
const FOLDERS = ['src/', 'build/', 'testing/', 'bench/', 'e2e/']

/** The rules and their test, which quote what they forbid. */
const QUOTING = ['build/tidy/sentence-rules.ts', 'build/tidy.test.ts']

/** A docstring that opens with one of these has no subject. */
const OPENINGS =
  /^(?:At|Below|By|For|From|How|If|In|On|Of|When|Where|Whether|Who|Whose|Why|With|Without)\b/

interface Phrase {
  readonly text: RegExp
  readonly replacement: string
}

/** The words of idioms such as "is no longer" and "is no later than". */
const COMPARATIVES = 'longer|fewer|later|newer|older|smaller|greater|slower|faster|more|less'

/** Phrases of comments that a reader has to translate, each with what to write. */
const PHRASES: readonly Phrase[] = [
  {
    // "There is no" is idiomatic too.
    text: new RegExp(`(?<!\\b[Tt]here )\\b(?:is|are) (?:no (?!(?:${COMPARATIVES})\\b)|none\\b)`),
    replacement: '"is not a", "is not one of", or what the thing is instead',
  },
  { text: /\bany more\b/, replacement: '"no longer", or the state that is reached' },
  { text: /\bfor good\b/, replacement: '"permanently"' },
  { text: /\bgo(?:es)? on\b/, replacement: '"continues"' },
  { text: /\bwhatever\b/i, replacement: '"regardless of", or "any"' },
  { text: /\bso (?:many|long a)\b/, replacement: 'the name of the parameter' },
  { text: /\bbegins? to\b/, replacement: '"starts", or the verb alone' },
  { text: /\b(?:null|nothing|[Tt]hrows|[Ff]alse|[Tt]rue) where\b/, replacement: '"if"' },
  { text: /\ba way to it\b/, replacement: 'what leads to it' },
  { text: /\b(?:is|are|was|were) (?:asked|told)\b/, replacement: 'what the program sends' },
  { text: /(?<!`)\b(?:nobody|anybody)\b/i, replacement: 'the caller, client, operator or author' },
]

/** The first words of a name that continues its describe, or that has no subject. */
const CONTINUATION = new RegExp(
  `^(?:${[
    'also|and|are|as|at|be|by|can|cannot|do|does|for|from|had|has|have|in|is|may|must|not|of|on',
    'or|should|that|to|was|were|when|where|which|who|whose|will|with|without',
  ].join('|')})\\b`,
)

/** The text before the name in a call that declares a test, with or without a table. */
const TEST_HEAD = /(?:\b(?:test|it)\b[\w.]*(?:<.*>)?(?:\(.*\))?|^\s*[\])}]*\])\)?\($/

export function sentenceFindings(file: SourceFile, folders = FOLDERS): Finding[] {
  if (!folders.some((folder) => file.path.startsWith(folder))) return []
  if (isGenerated(file.path) || QUOTING.includes(file.path)) return []
  const comments = file.lines.map((_, i) => commentOf(file, i))
  return file.lines.flatMap((_, i) => [
    ...openingFindings(file, comments, i),
    ...phraseFindings(file, comments, i),
    ...nameFindings(file, i),
  ])
}

/** Returns the comment of a line, in place: everything else is blank. */
function commentOf({ lines, code, strings }: SourceFile, i: number): string {
  const isComment = (k: number): boolean => code[i]![k] === ' ' && strings[i]![k] === ' '
  return lines[i]!.split('')
    .map((c, k) => (isComment(k) ? c : ' '))
    .join('')
}

function openingFindings(file: SourceFile, comments: readonly string[], i: number): Finding[] {
  const start = /^\s*\/\*\*\s?(.*)$/.exec(comments[i]!)?.[1]
  if (start === undefined) return []
  const first = start.trim() === '' ? (comments[i + 1] ?? '').replace(/^\s*\*\s?/, '') : start
  const opening = OPENINGS.exec(first)?.[0]
  if (opening === undefined) return []
  const rule = `a docstring begins with "${opening}"`
  const replacement = 'begin with a verb in the third person or a noun phrase'
  return [{ file: file.path, line: i + 1, rule, replacement }]
}

function phraseFindings(file: SourceFile, comments: readonly string[], i: number): Finding[] {
  return PHRASES.flatMap(({ text, replacement }) => {
    const found = text.exec(comments[i]!)?.[0]
    if (found === undefined) return []
    return [{ file: file.path, line: i + 1, rule: `the phrase "${found.trim()}"`, replacement }]
  })
}

function nameFindings(file: SourceFile, i: number): Finding[] {
  const name = testName(file, i)
  const first = name === null ? undefined : CONTINUATION.exec(name)?.[0]
  if (first === undefined) return []
  const rule = `the name of a test begins with "${first}"`
  const replacement = 'a whole sentence, with its subject, that says the rule'
  return [{ file: file.path, line: i + 1, rule, replacement }]
}

/** Returns the name of the test that a call on this line, or on the line before, declares. */
function testName({ lines }: SourceFile, i: number): string | null {
  const line = lines[i]!
  for (const { 0: quoted, index } of line.matchAll(/(['"`]).*?\1|['"`].*$/g)) {
    const before = line.slice(0, index)
    const head = before.trim() === '' ? (lines[i - 1] ?? '') : before
    if (TEST_HEAD.test(head)) return quoted.slice(1)
  }
  return null
}
