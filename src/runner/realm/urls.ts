/** URL of a Workspace's realm; the parsing itself happens outside of it. */
import type { Bridge } from './bridge.ts'
import type { makeSearchParams, Pair } from './search-params.ts'

/** In the order in which they follow the href in what `parseUrl` answers. */
export const URL_PARTS = [
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const

export function makeUrl(
  { parseUrl, setUrlPart }: Bridge,
  parts: readonly string[],
  state: WeakMap<object, { pairs: Pair[]; changed: (() => void) | null }>,
  SearchParams: ReturnType<typeof makeSearchParams>,
) {
  class URL {
    /** The href, then each of `parts`. */
    #lines: string[]
    readonly searchParams: InstanceType<typeof SearchParams>
    constructor(url: unknown, base?: unknown) {
      const found = parseUrl(`${url}`, base === undefined ? null : `${base}`)
      if (found === null) throw new TypeError(`"${url}" is not a URL`)
      this.#lines = found.split('\n')
      this.searchParams = new SearchParams(this.#part('search'))
      state.get(this.searchParams)!.changed = () => {
        this.#set('search', this.searchParams.toString())
      }
    }
    static canParse(url: unknown, base?: unknown): boolean {
      return parseUrl(`${url}`, base === undefined ? null : `${base}`) !== null
    }
    static parse(url: unknown, base?: unknown): URL | null {
      return URL.canParse(url, base) ? new URL(url, base) : null
    }
    #part(name: string): string {
      return this.#lines[parts.indexOf(name) + 1]!
    }
    #set(name: string, value: string): void {
      this.#lines = setUrlPart(this.#lines[0]!, name, value)?.split('\n') ?? this.#lines
    }
    get href(): string {
      return this.#lines[0]!
    }
    set href(value: unknown) {
      this.#lines = new URL(value).#lines
      this.#reread()
    }
    #reread(): void {
      state.get(this.searchParams)!.pairs = [...new SearchParams(this.#part('search'))]
    }
    toString(): string {
      return this.#lines[0]!
    }
    toJSON(): string {
      return this.#lines[0]!
    }
    static {
      for (const name of parts) {
        const get = function (this: URL) {
          return this.#part(name)
        }
        const set = function (this: URL, value: unknown) {
          this.#set(name, `${value}`)
          if (name === 'search') this.#reread()
        }
        const accessor = name === 'origin' ? { get } : { get, set }
        Object.defineProperty(URL.prototype, name, { ...accessor, configurable: true })
      }
    }
  }
  return URL
}
