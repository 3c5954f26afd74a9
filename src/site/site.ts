/**
 * The documentation as static pages, from the embedded documents. The same documents give the same
 * bytes, whether `npm run docs` writes them or `svc docs --serve` renders them at a request.
 */
import { chaptersOf, FRONT } from './chapters.ts'
import { type Entry, type Frame, pageHtml } from './layout.ts'
import { type ParsedDocument, parseDocument, titleOf } from './markdown.ts'
import { searchScript } from './search-index.ts'

/** A file of the site. */
export interface SiteFile {
  readonly type: string
  readonly text: string
}

export interface SiteSources {
  readonly version: string
  /** Markdown by name: topics, `contract/NAME`, and `index` for the first page. */
  readonly documents: Readonly<Record<string, string>>
  /** Scripts, styles and images by path. */
  readonly assets: Readonly<Record<string, SiteFile>>
}

const SEARCH = 'search-index.js'
const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'

export class Site {
  readonly #sources: SiteSources
  readonly #parsed = new Map<string, ParsedDocument>()
  readonly #entries: ReadonlyMap<string, Entry>
  /** The documents in the order of reading. */
  readonly #order: readonly string[]
  #search: string | null = null

  constructor(sources: SiteSources) {
    this.#sources = sources
    const { documents } = sources
    const chapters = chaptersOf(Object.keys(documents))
    this.#order = [FRONT, ...chapters.flatMap((chapter) => chapter.documents)]
    this.#entries = new Map(
      this.#order.map((name) => [
        name,
        { path: pathOf(name), title: titleOf(documents[name] ?? '') },
      ]),
    )
  }

  /** The paths of all files, without a slash at the front. */
  get paths(): string[] {
    return [...Object.keys(this.#sources.assets), SEARCH, ...this.#order.map(pathOf)].toSorted()
  }

  /** Returns a file; null if the site has none at this path. */
  file(path: string): SiteFile | null {
    const { assets } = this.#sources
    if (Object.hasOwn(assets, path)) return assets[path]!
    if (path === SEARCH) return { type: SCRIPT, text: this.#searchScript() }
    const name = path.endsWith('.html') ? path.slice(0, -'.html'.length) : ''
    return this.#order.includes(name) ? { type: HTML, text: this.#page(name) } : null
  }

  #page(name: string): string {
    const at = this.#order.indexOf(name)
    const entryAt = (index: number): Entry | null =>
      this.#entries.get(this.#order[index] ?? '') ?? null
    const frame: Frame = {
      version: this.#sources.version,
      chapters: chaptersOf(this.#order),
      entryOf: (other) => this.#entries.get(other)!,
      previous: entryAt(at - 1),
      next: entryAt(at + 1),
    }
    const { headings, html } = this.#parse(name)
    return pageHtml({ ...this.#entries.get(name)!, headings, html: html() }, frame)
  }

  #parse(name: string): ParsedDocument {
    const known = this.#parsed.get(name)
    if (known !== undefined) return known
    const parsed = parseDocument(this.#sources.documents[name] ?? '', linkOf)
    this.#parsed.set(name, parsed)
    return parsed
  }

  #searchScript(): string {
    this.#search ??= searchScript(
      this.#order.map((name) => ({ path: pathOf(name), ...this.#parse(name) })),
    )
    return this.#search
  }
}

function pathOf(name: string): string {
  return `${name}.html`
}

/** Returns the address of the page of a document that another one links to. */
function linkOf(target: string): string {
  return target.replace(/\.md(?=#|$)/, '.html')
}
