/**
 * Citations of the contract, in the one form that leads somewhere: `(contract/FILE.md, HEADING)`,
 * several separated by semicolons. The file is one of src/docs/contract and has that heading.
 */
import { codeBlocks, type MarkdownFile } from '../../testing/markdown/markdown.ts'
import { type Finding, isGenerated } from './source-files.ts'

const CONTRACT = 'src/docs/contract/'
const FORM = '(contract/FILE.md, HEADING)'

/** The rules and their test, which quote what they forbid. */
const QUOTING = ['build/tidy/contract-citations.ts', 'build/tidy.test.ts']

/** A comment that continues in the next line. Replaced by as many spaces, so that offsets stay. */
const LINE_BREAK = /\n[ \t]*(?:\*(?!\/)|\/\/)?/g

/** The name of a file of the contract, except within a path, which is a link. */
const FILE = /(?<![\w/.-])contract\/([\w-]+\.md)/g
/** The heading after the name of the file, which has no parenthesis and no semicolon. */
const HEADING = /^,\s+([^;()]*[^;()\s])\s*[;)]/
const BEFORE = /(?:\(|;\s+)$/
/** Names of the documents that a reader of the source does not have. */
const ELSEWHERE =
  /\bDocuments?\s+[12]\b|\b[Ww]ire\s+decisions\b|\b(?:application|management)\s+contract\b/g

/** Returns the headings below the title of each file of the contract, by the name of the file. */
export function contractHeadings(files: readonly MarkdownFile[]): Map<string, string[]> {
  const contract = files.filter(({ path }) => path.startsWith(CONTRACT))
  return new Map(contract.map((file) => [file.path.slice(CONTRACT.length), headingsOf(file.text)]))
}

function headingsOf(text: string): string[] {
  const prose = codeBlocks(text).reduce((rest, block) => rest.replace(block.text, ''), text)
  return [...prose.matchAll(/^##+ (.*)$/gm)].map(([, heading = '']) => heading)
}

/** Finds headings that occur twice in a file, since a citation would not say which one it means. */
export function headingFindings(headings: ReadonlyMap<string, readonly string[]>): Finding[] {
  return [...headings].flatMap(([file, names]) =>
    names
      .filter((name, i) => names.indexOf(name) !== i || /[;()]/.test(name))
      .map((name) => ({
        file: CONTRACT + file,
        line: 1,
        rule: `"${name}" cannot be cited`,
        replacement: 'a heading that is unique in the file, without parentheses and semicolons',
      })),
  )
}

/** Finds citations that lead nowhere, of any text file. */
export function citationFindings(
  { path, text }: MarkdownFile,
  headings: ReadonlyMap<string, readonly string[]>,
): Finding[] {
  if (isGenerated(path) || QUOTING.includes(path) || path.startsWith(CONTRACT)) return []
  const joined = text.replace(LINE_BREAK, (breaking) => ' '.repeat(breaking.length))
  const find = (index: number, rule: string, replacement: string): Finding => {
    return { file: path, line: text.slice(0, index).split('\n').length, rule, replacement }
  }
  const named = [...joined.matchAll(ELSEWHERE)].map((match) =>
    find(match.index, `"${plain(match[0])}" is not in the repository`, FORM),
  )
  const cited = [...joined.matchAll(FILE)].flatMap((match) => {
    const before = joined.slice(0, match.index)
    const heading = HEADING.exec(joined.slice(match.index + match[0].length))?.[1]
    const problem = citationProblem(headings, match[1]!, BEFORE.test(before) ? heading : undefined)
    return problem === null ? [] : [find(match.index, problem, FORM)]
  })
  return [...named, ...cited]
}

function citationProblem(
  headings: ReadonlyMap<string, readonly string[]>,
  file: string,
  heading: string | undefined,
): string | null {
  const known = headings.get(file)
  if (known === undefined) return `the contract has no file ${file}`
  if (heading === undefined) return `a citation of ${file} in another form`
  const name = plain(heading)
  return known.includes(name) ? null : `${file} has no heading "${name}"`
}

/** Returns the text with one space for each break of a line and its comment. */
function plain(text: string): string {
  return text.replace(/\s+/g, ' ')
}
