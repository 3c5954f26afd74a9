/** Language rules that a machine can check: docstring openings, glossary, commit subjects. */
import { spawnSync } from 'node:child_process'
import { type Finding, isGenerated, type SourceFile } from './source-files.ts'

/** A docstring begins with a verb in the third person or a noun phrase, not with one of these. */
const OPENINGS = /^(Of|Whoever|The same|What|That|As|Makes it so)\b/

/** Identifiers that the glossary replaces, each with the term to use. */
const GLOSSARY: Readonly<Record<string, string>> = {
  Losses: 'LostRunCounter',
  Tickets: 'LockManager',
  UnsettledCommits: 'PendingCommits',
  unsettled: 'pending',
  beLate: 'markStalled',
  beginUse: 'pinSnapshot',
  endUse: 'unpinSnapshot',
  Pace: 'SpeculationPolicy',
  isToldAhead: 'isPipelined',
  Departure: 'CancellationToken',
  Rejection: 'OperationError',
  Malformed: 'ValidationError',
  condemn: 'terminate',
  culprit: 'responsibleCall',
  Blame: 'Attribution',
  RunnerLives: 'RunnerRegistry',
  Patience: 'WaitOptions',
  Gate: 'ConcurrencyLimit',
  Serial: 'SerialQueue',
  Newest: 'SingleFlight',
  Background: 'CoalescingTask',
  Closing: 'ShutdownStack',
  RecentTexts: 'SeenFilter',
  sawBefore: 'hasSeen',
  naughty: 'malicious',
  surviveMistakes: 'installCrashHandlers',
}
const GLOSSARY_WORDS = new RegExp(`\\b(${Object.keys(GLOSSARY).join('|')})\\b`)
export const VAGUE_SUBJECTS = /\b([Ww]hoever|[Ss]omebody)\b/

/** `area: imperative summary`, or `area/part: ...`, at most 72 characters. */
const SUBJECT = /^[a-z0-9-]+(\/[a-z0-9-]+)?: \S.*$/
const SUBJECT_CHARACTERS_MAX = 72

/** The rules and their test, which quote what they forbid. */
const QUOTING = ['build/tidy/language-rules.ts', 'build/tidy.test.ts']

export function languageFindings(file: SourceFile): Finding[] {
  if (isGenerated(file.path) || QUOTING.includes(file.path)) return []
  return file.lines.flatMap((line, i) => [
    ...openingFindings(file, line, i),
    ...wordFindings(file, i),
  ])
}

function openingFindings(file: SourceFile, line: string, i: number): Finding[] {
  const start = /^\s*\/\*\*\s?(.*)$/.exec(line)
  if (start === null) return []
  const first = start[1] === '' ? (file.lines[i + 1] ?? '').replace(/^\s*\*\s?/, '') : start[1]!
  const opening = OPENINGS.exec(first)
  if (opening === null) return []
  return [
    {
      file: file.path,
      line: i + 1,
      rule: `a docstring begins with "${opening[1]}"`,
      replacement: 'begin with what it does or is',
    },
  ]
}

function wordFindings(file: SourceFile, i: number): Finding[] {
  const findings: Finding[] = []
  const at = { file: file.path, line: i + 1 }
  const term = GLOSSARY_WORDS.exec(file.code[i]!)?.[1]
  if (term !== undefined) {
    const replacement = GLOSSARY[term]!
    findings.push({ ...at, rule: `${term} is an invented term`, replacement })
  }
  const vague = VAGUE_SUBJECTS.exec(file.lines[i]!)?.[1]
  if (vague !== undefined) {
    const replacement = 'name the caller, client, operator or author'
    findings.push({ ...at, rule: `"${vague}" names no subject`, replacement })
  }
  return findings
}

/**
 * Returns the commit subjects that break the rule, of all commits since the rule exists. Empty if
 * the checkout has no history, such as an unpacked archive.
 */
export function subjectFindings(root: string): string[] {
  const git = (...parameters: string[]): string[] =>
    spawnSync('git', parameters, { cwd: root, encoding: 'utf8' }).stdout.split('\n').filter(Boolean)
  const [introduced] = git(
    'log',
    '--diff-filter=A',
    '--format=%H',
    '--',
    'build/tidy/language-rules.ts',
  )
  if (introduced === undefined) return []
  return git('log', '--no-merges', '--format=%s', `${introduced}..HEAD`).filter(
    (subject) => subject.length > SUBJECT_CHARACTERS_MAX || !SUBJECT.test(subject),
  )
}
