/**
 * Renders a document from Markdown. HTML of a document is shown as text, except comments, which
 * mark parts for tests and are left out. Images are left out: the site requests nothing of others.
 */
import { Marked, type Token, type Tokens } from 'marked'
import { escapeHtml } from './escape.ts'
import { highlighted } from './highlight.ts'

export interface Heading {
  readonly level: number
  readonly anchor: string
  /** The text without marks. */
  readonly text: string
}

/** A part of a document from one heading to the next, as the search sees it. */
export interface Section {
  /** Empty for the text before the second heading. */
  readonly anchor: string
  readonly heading: string
  readonly text: string
}

/** A document that was read. `html` renders it. */
export interface ParsedDocument {
  readonly title: string
  /** The headings below the title. */
  readonly headings: readonly Heading[]
  readonly sections: readonly Section[]
  html(): string
}

/** Returns the address of a link without a scheme. */
export type ResolveLink = (target: string) => string

const COMMENT = /^\s*(?:<!--[\s\S]*?-->\s*)+$/
const SCHEME = /^[a-z][a-z0-9+.-]*:/i
const SAFE = /^(?:https?|mailto):/i

export function parseDocument(markdown: string, resolve: ResolveLink): ParsedDocument {
  const tokens = new Marked({ gfm: true }).lexer(markdown)
  const headings = headingsOf(tokens)
  const [title, ...rest] = headings.values()
  return {
    title: title?.text ?? '',
    headings: rest,
    sections: sectionsOf(tokens, headings),
    html: () => htmlOf(tokens, headings, resolve),
  }
}

/** Returns the title of a document without a look at the rest. */
export function titleOf(markdown: string): string {
  const [line = ''] = markdown.split('\n', 1)
  return parseDocument(line, String).title
}

type Headings = ReadonlyMap<Token, Heading>

function htmlOf(tokens: Token[], headings: Headings, resolve: ResolveLink): string {
  const [title] = headings.values()
  const marked = new Marked({ gfm: true })
  marked.use({
    renderer: {
      heading(token) {
        const { tokens: inline, depth } = token
        const html = this.parser.parseInline(inline)
        const heading = headings.get(token)
        // Links do not lead to a heading inside a list or a quotation.
        if (heading === undefined) return `<h${depth}>${html}</h${depth}>\n`
        const { anchor, text } = heading
        if (heading === title) return `<h1 id="${anchor}">${html}</h1>\n`
        const name = `Link to “${escapeHtml(text)}”`
        const link = `<a class="anchor" href="#${anchor}" aria-label="${name}">#</a>`
        return `<h${depth} id="${anchor}">${html} ${link}</h${depth}>\n`
      },
      code({ text, lang = '' }) {
        const language = /^\w*/.exec(lang)![0]
        const code = highlighted(text, language)
        return `<div class="code"><pre tabindex="0"><code>${code}</code></pre></div>\n`
      },
      html: ({ text }) => (COMMENT.test(text) ? '' : escapeHtml(text)),
      image: ({ text }) => escapeHtml(text),
      link({ href, tokens: inline }) {
        const text = this.parser.parseInline(inline)
        if (!SCHEME.test(href)) return `<a href="${escapeHtml(resolve(href))}">${text}</a>`
        if (!SAFE.test(href)) return text
        return `<a href="${escapeHtml(href)}" rel="noreferrer">${text}</a>`
      },
      table(token) {
        const html = tableHtml(token, (cell) => this.parser.parseInline(cell.tokens))
        return `<div class="table" tabindex="0">${html}</div>\n`
      },
    },
  })
  return marked.parser(tokens)
}

function headingsOf(tokens: readonly Token[]): Headings {
  const anchorOf = uniqueAnchors()
  const headings = tokens.filter((token): token is Tokens.Heading => token.type === 'heading')
  return new Map(
    headings.map((token) => [
      token,
      { level: token.depth, anchor: anchorOf(token.text), text: plainText(token.tokens) },
    ]),
  )
}

function tableHtml({ header, rows }: Tokens.Table, inline: (cell: Tokens.TableCell) => string) {
  const row = (cells: readonly Tokens.TableCell[], tag: string): string => {
    const style = (cell: Tokens.TableCell): string => (cell.align === 'right' ? ' class="end"' : '')
    const html = cells.map((cell) => {
      // A heading cell without text names nothing.
      const name = tag === 'th' && cell.text === '' ? 'td' : tag
      return `<${name}${style(cell)}>${inline(cell)}</${name}>`
    })
    return `<tr>${html.join('')}</tr>`
  }
  const body = rows.map((cells) => row(cells, 'td')).join('\n')
  return `<table><thead>${row(header, 'th')}</thead>\n<tbody>${body}</tbody></table>`
}

/** Returns anchors as GitHub makes them: a repeated one has a number. */
function uniqueAnchors(): (heading: string) => string {
  const seen = new Map<string, number>()
  return (heading) => {
    const anchor = heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  }
}

function sectionsOf(tokens: readonly Token[], headings: Headings): Section[] {
  const sections: { anchor: string; heading: string; text: string }[] = []
  for (const token of tokens) {
    const heading = headings.get(token)
    if (heading !== undefined) {
      const { anchor, text } = heading
      const isTitle = sections.length === 0
      sections.push({ anchor: isTitle ? '' : anchor, heading: text, text: '' })
    } else {
      const last = sections.at(-1)
      const text = plainText([token])
      if (last !== undefined && text !== '') last.text += `${text} `
    }
  }
  return sections.map((section) => ({ ...section, text: section.text.replace(/\s+/g, ' ').trim() }))
}

/** The words of tokens, without marks, comments and targets of links. */
function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token): string => {
      if (token.type === 'html') return COMMENT.test(token.raw) ? '' : token.raw
      if (token.type === 'table') {
        const { header, rows } = token as Tokens.Table
        return [header, ...rows]
          .flatMap((row) => row.map((cell) => plainText(cell.tokens)))
          .join(' ')
      }
      if (token.type === 'list') {
        return (token as Tokens.List).items.map((item) => plainText(item.tokens)).join(' ')
      }
      if (token.type === 'code' || token.type === 'codespan') return token.text
      if ('tokens' in token && token.tokens !== undefined) return plainText(token.tokens)
      return 'text' in token && typeof token.text === 'string' ? unescaped(token.text) : ' '
    })
    .join('')
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
