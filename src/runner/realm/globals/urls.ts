/** `URL`; the parsing itself is done outside of the realm. */
import { bridge, URL_PARTS } from '../bridge.ts'
import { observeSearchParams, resetSearchParams, URLSearchParams } from './search-params.ts'

function parse(url: unknown, base: unknown): string | null {
  return bridge.parseUrl(`${url}`, base === undefined ? null : `${base}`)
}

export class URL {
  /** The href, then each of URL_PARTS. */
  #lines: string[]
  readonly searchParams: URLSearchParams
  constructor(url: unknown, base?: unknown) {
    const found = parse(url, base)
    if (found === null) throw new TypeError(`"${url}" is not a URL`)
    this.#lines = found.split('\n')
    this.searchParams = new URLSearchParams(this.#part('search'))
    observeSearchParams(this.searchParams, () => {
      this.#set('search', this.searchParams.toString())
    })
  }
  static canParse(url: unknown, base?: unknown): boolean {
    return parse(url, base) !== null
  }
  static parse(url: unknown, base?: unknown): URL | null {
    return URL.canParse(url, base) ? new URL(url, base) : null
  }
  #part(name: (typeof URL_PARTS)[number]): string {
    return this.#lines[URL_PARTS.indexOf(name) + 1]!
  }
  #set(name: string, value: string): void {
    this.#lines = bridge.setUrlPart(this.#lines[0]!, name, value)?.split('\n') ?? this.#lines
  }
  get href(): string {
    return this.#lines[0]!
  }
  set href(value: unknown) {
    this.#lines = new URL(value).#lines
    this.#resetParams()
  }
  #resetParams(): void {
    resetSearchParams(this.searchParams, this.#part('search'))
  }
  toString(): string {
    return this.#lines[0]!
  }
  toJSON(): string {
    return this.#lines[0]!
  }
  static {
    for (const name of URL_PARTS) {
      const get = function (this: URL) {
        return this.#part(name)
      }
      const set = function (this: URL, value: unknown) {
        this.#set(name, `${value}`)
        if (name === 'search') this.#resetParams()
      }
      const accessor = name === 'origin' ? { get } : { get, set }
      Object.defineProperty(URL.prototype, name, { ...accessor, configurable: true })
    }
  }
}
