/**
 * What a Function finds around it besides the language. There are no timers and no network; the
 * time and random values are those of the call, and the same when it runs again.
 */

interface Console {
  debug(...data: unknown[]): void
  log(...data: unknown[]): void
  info(...data: unknown[]): void
  warn(...data: unknown[]): void
  error(...data: unknown[]): void
  trace(...data: unknown[]): void
  dir(...data: unknown[]): void
  table(...data: unknown[]): void
  assert(condition?: boolean, ...data: unknown[]): void
}
/** Lines in the log of the Environment, as `ctx.log` writes them. */
declare const console: Console

interface Crypto {
  getRandomValues<T extends ArrayBufferView>(array: T): T
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`
}
declare const crypto: Crypto

interface TextEncoder {
  readonly encoding: string
  encode(input?: string): Uint8Array<ArrayBuffer>
  encodeInto(source: string, destination: Uint8Array): { read: number; written: number }
}
declare const TextEncoder: { prototype: TextEncoder; new (): TextEncoder }

interface TextDecoder {
  readonly encoding: string
  readonly fatal: boolean
  readonly ignoreBOM: boolean
  decode(input?: ArrayBuffer | ArrayBufferView): string
}
/** UTF-8 only. */
declare const TextDecoder: {
  prototype: TextDecoder
  new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder
}

interface URLSearchParams {
  readonly size: number
  append(name: string, value: string): void
  delete(name: string, value?: string): void
  get(name: string): string | null
  getAll(name: string): string[]
  has(name: string, value?: string): boolean
  set(name: string, value: string): void
  sort(): void
  toString(): string
  forEach(each: (value: string, key: string, parent: URLSearchParams) => void): void
  entries(): IterableIterator<[string, string]>
  keys(): IterableIterator<string>
  values(): IterableIterator<string>
  [Symbol.iterator](): IterableIterator<[string, string]>
}
declare const URLSearchParams: {
  prototype: URLSearchParams
  new (init?: string | Record<string, string> | string[][] | URLSearchParams): URLSearchParams
}

interface URL {
  href: string
  readonly origin: string
  protocol: string
  username: string
  password: string
  host: string
  hostname: string
  port: string
  pathname: string
  search: string
  readonly searchParams: URLSearchParams
  hash: string
  toString(): string
  toJSON(): string
}
declare const URL: {
  prototype: URL
  new (url: string | URL, base?: string | URL): URL
  canParse(url: string | URL, base?: string | URL): boolean
  parse(url: string | URL, base?: string | URL): URL | null
}

declare function atob(data: string): string
declare function btoa(data: string): string
declare function queueMicrotask(callback: () => void): void
declare function structuredClone<T>(value: T): T
