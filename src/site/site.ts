/**
 * The documentation as static pages, from the embedded documents. The same documents give the same
 * bytes, whether `npm run docs` writes them or `svc docs --serve` renders them at a request.
 */
import { chaptersOf, FRONT } from './chapters.ts'
import { type Frame, type Page, pageHtml } from './layout.ts'
import { type RenderedDocument, renderDocument } from './markdown.ts'
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
  readonly #rendered = new Map<string, RenderedDocument>()
  /** The documents in the order of reading. */
  readonly #order: readonly string[]
  #search: string | null = null

  constructor(sources: SiteSources) {
    this.#sources = sources
    const names = Object.keys(sources.documents)
    this.#order = [FRONT, ...chaptersOf(names).flatMap(({ documents }) => documents)]
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
    const pageAt = (index: number): Page | null => {
      const other = this.#order[index]
      return other === undefined ? null : this.#pageOf(other)
    }
    const frame: Frame = {
      version: this.#sources.version,
      chapters: chaptersOf(this.#order),
      pageOf: (other) => this.#pageOf(other),
      previous: pageAt(at - 1),
      next: pageAt(at + 1),
    }
    return pageHtml(this.#pageOf(name), frame)
  }

  #pageOf(name: string): Page {
    return { path: pathOf(name), ...this.#render(name) }
  }

  #render(name: string): RenderedDocument {
    const known = this.#rendered.get(name)
    if (known !== undefined) return known
    const rendered = renderDocument(this.#sources.documents[name] ?? '', linkOf)
    this.#rendered.set(name, rendered)
    return rendered
  }

  #searchScript(): string {
    this.#search ??= searchScript(
      this.#order.map((name) => ({ path: pathOf(name), ...this.#render(name) })),
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
