/** Parts of manual pages in mdoc(7). */

const COLUMNS = 72

/** Escapes a text, so that roff prints it as it is. */
export function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-')
}

/** Escapes the words of a line that begins with a macro, which would read some as macros. */
export function argumentsOf(text: string): string {
  const words = text.split(/\s+/).map((word) => {
    const bare = escaped(word).replaceAll('"', '\\(dq')
    return /^(?:[A-Z%][A-Za-z0-9]|[.,:;()[\]?!|])/.test(word) ? `\\&${bare}` : bare
  })
  return words.join(' ')
}

/** Formats a text: each sentence begins a line, and no line has more than 72 columns. */
export function prose(text: string): string {
  const sentences = text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/([.:;!?])(\)?) (?=\S)/g, '$1$2\n')
  const lines = sentences
    .split('\n')
    .flatMap((sentence) => sentence.match(new RegExp(`.{1,${COLUMNS}}(?: |$)`, 'g')) ?? [sentence])
  return lines
    .map((line) => escaped(line.trim()))
    .map((line) => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join('\n')
}

/** A block that roff does not fill. */
export function literal(lines: readonly string[]): string {
  const safe = lines.map(escaped).map((line) => (/^[.']/.test(line) ? `\\&${line}` : line))
  return ['.Bd -literal', ...safe, '.Ed'].join('\n')
}

/** A list of terms, each with its text. `heads` are the arguments of `.It`. */
export function terms(rows: readonly (readonly [head: string, text: string])[]): string {
  if (rows.length === 0) return ''
  const items = rows.map(([head, text]) => `.It ${head}\n${prose(text)}`)
  return ['.Bl -tag -width Ds', ...items, '.El'].join('\n')
}

export function optionHead(name: string, value: string | null): string {
  const flag = `Fl ${escaped(name.slice(1))}`
  return value === null ? flag : `${flag} Ar ${argumentsOf(value)}`
}

export interface Page {
  readonly name: string
  readonly section: 1 | 8
  readonly summary: string
  /** Sections after NAME, without those whose body is empty. */
  readonly sections: readonly (readonly [title: string, body: string])[]
}

/** `date` has the form 2026-11-27. */
export function pageText({ name, section, summary, sections }: Page, date: string): string {
  const [year, month, day] = date.split('-').map(Number)
  const names = new Intl.DateTimeFormat('en-US', { month: 'long', timeZone: 'UTC' })
  const shown = `${names.format(Date.UTC(year!, month! - 1, 1))} ${day}, ${year}`
  return [
    `.Dd ${shown}`,
    `.Dt ${name.toUpperCase()} ${section}`,
    '.Os',
    '.Sh NAME',
    `.Nm ${name}`,
    `.Nd ${argumentsOf(summary)}`,
    ...sections
      .filter(([, body]) => body !== '')
      .flatMap(([title, body]) => [`.Sh ${title}`, body]),
    '',
  ].join('\n')
}
