/** Parts of Markdown from which the references are built. */
import { assert } from '../../src/errors/assert.ts'

/** Replaces the text between `<!-- NAME: ... -->` and `<!-- /NAME -->`, each on its own line. */
export function between(text: string, name: string, content: string): string {
  const begin = new RegExp(`^<!-- ${name}: .*-->\n`, 'm').exec(text)
  const start = begin === null ? -1 : begin.index + begin[0].length
  const end = text.indexOf(`<!-- /${name} -->\n`)
  assert(begin !== null && end >= start, `the marks around ${name} are missing`)
  return text.slice(0, start) + content + text.slice(end)
}

/** Formats a table; a `|` in a cell is escaped, since it would end the cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line), ''].join('\n')
}

/** Formats a text as code; returns an empty text for null. */
export function code(text: string | null | undefined): string {
  return text === null || text === undefined || text === '' ? '' : `\`${text}\``
}

/** Formats a block of code. */
export function fenced(language: string, lines: readonly string[]): string {
  return [`\`\`\`${language}`, ...lines, '```', ''].join('\n')
}
