/**
 * The globals of a Function besides those of the language. In Queries and Mutations the time and
 * random values belong to the call and are the same when it runs again; globals that are marked
 * "Actions only" are absent there.
 */

interface Console {
  debug(...data: unknown[]): void
  log(...data: unknown[]): void
  info(...data: unknown[]): void
  warn(...data: unknown[]): void
  error(...data: unknown[]): void
  trace(...data: unknown[]): void
  dir(...data: unknown[]): void
  dirxml(...data: unknown[]): void
  table(...data: unknown[]): void
  assert(condition?: boolean, ...data: unknown[]): void
  group(...data: unknown[]): void
  groupCollapsed(...data: unknown[]): void
  groupEnd(): void
  clear(): void
  count(label?: string): void
  countReset(label?: string): void
  /** Measures time, which stands still in Queries and Mutations. */
  time(label?: string): void
  timeLog(label?: string, ...data: unknown[]): void
  timeEnd(label?: string): void
}
/** Writes lines to the log of the Environment, as `ctx.log` does. */
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
/** Decodes UTF-8 only. */
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

interface DOMException extends Error {
  readonly code: number
}
declare const DOMException: {
  prototype: DOMException
  new (message?: string, nameOrOptions?: string | { name?: string; cause?: unknown }): DOMException
}

interface AbortSignal {
  readonly aborted: boolean
  readonly reason: unknown
  onabort: ((event: unknown) => unknown) | null
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: (event: unknown) => unknown): void
  removeEventListener(type: 'abort', listener: (event: unknown) => unknown): void
}
declare const AbortSignal: {
  prototype: AbortSignal
  abort(reason?: unknown): AbortSignal
  /** Actions only. */
  timeout(milliseconds: number): AbortSignal
  any(signals: Iterable<AbortSignal>): AbortSignal
}

interface AbortController {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
}
declare const AbortController: { prototype: AbortController; new (): AbortController }

interface Headers {
  append(name: string, value: string): void
  delete(name: string): void
  get(name: string): string | null
  getSetCookie(): string[]
  has(name: string): boolean
  set(name: string, value: string): void
  forEach(each: (value: string, name: string, parent: Headers) => void): void
  entries(): IterableIterator<[string, string]>
  keys(): IterableIterator<string>
  values(): IterableIterator<string>
  [Symbol.iterator](): IterableIterator<[string, string]>
}
type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>
declare const Headers: { prototype: Headers; new (init?: HeadersInit): Headers }

/** A whole body: there are no streams, forms or blobs. */
type BodyInit = string | Uint8Array | ArrayBuffer | ArrayBufferView | URLSearchParams

interface Body {
  readonly headers: Headers
  readonly bodyUsed: boolean
  arrayBuffer(): Promise<ArrayBuffer>
  bytes(): Promise<Uint8Array<ArrayBuffer>>
  json(): Promise<unknown>
  text(): Promise<string>
}

interface RequestInit {
  method?: string
  headers?: HeadersInit
  /** The body, of at most 8 MiB. */
  body?: BodyInit | null
  /** `follow` by default: at most 10 redirects, to hosts in `uses.network`, by the same scheme. */
  redirect?: 'follow' | 'manual' | 'error'
  signal?: AbortSignal | null
}

interface Request extends Body {
  readonly method: string
  readonly url: string
  readonly redirect: string
  readonly signal: AbortSignal | null
  clone(): Request
}
declare const Request: {
  prototype: Request
  new (input: string | URL | Request, init?: RequestInit): Request
}

interface ResponseInit {
  status?: number
  statusText?: string
  headers?: HeadersInit
}

interface Response extends Body {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly url: string
  readonly redirected: boolean
  clone(): Response
}
declare const Response: {
  prototype: Response
  new (body?: BodyInit | null, init?: ResponseInit): Response
  json(data: unknown, init?: ResponseInit): Response
}

/** Actions only: reaches the hosts in `uses.network`, by https. A response has at most 16 MiB. */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>

// An overload for tasks without arguments: the `resolve` of a Promise would require its value.
/** Actions only: at most 1,024 timers, which end with the call. */
declare function setTimeout(task: (value: undefined) => unknown, milliseconds?: number): number
declare function setTimeout<Given extends unknown[]>(
  task: (...given: Given) => unknown,
  milliseconds?: number,
  ...given: Given
): number
/** Actions only. */
declare function setInterval(task: (value: undefined) => unknown, milliseconds?: number): number
declare function setInterval<Given extends unknown[]>(
  task: (...given: Given) => unknown,
  milliseconds?: number,
  ...given: Given
): number
declare function clearTimeout(timer?: number): void
declare function clearInterval(timer?: number): void
