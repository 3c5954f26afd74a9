/** Request and Response; their bodies are whole. */
import { URLSearchParams } from '../globals/search-params.ts'
import { TextDecoder, TextEncoder } from '../globals/text.ts'
import { URL } from '../globals/urls.ts'
import type { AbortSignal } from './aborts.ts'
import { Headers } from './headers.ts'

const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/
/** Methods that are sent in upper case, however they are written. */
const COMMON_METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']
const EMPTY = new Uint8Array(0)

const { isView } = ArrayBuffer
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Reads a body as bytes, with the content type that its kind implies. */
function readBody(body: unknown): { bytes: Uint8Array | null; type: string | null } {
  if (body === undefined || body === null) return { bytes: null, type: null }
  if (typeof body === 'string') {
    return { bytes: encoder.encode(body), type: 'text/plain;charset=UTF-8' }
  }
  if (body instanceof URLSearchParams) {
    const type = 'application/x-www-form-urlencoded;charset=UTF-8'
    return { bytes: encoder.encode(body.toString()), type }
  }
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0)), type: null }
  if (isView(body)) {
    const { buffer, byteOffset, byteLength } = body
    return { bytes: new Uint8Array(buffer, byteOffset, byteLength).slice(), type: null }
  }
  throw new TypeError(
    'a body is a string, bytes or URLSearchParams: write JSON.stringify(...) around an object',
  )
}

/** Returns the bytes of a body without a copy; null if there is none. */
let bytesOf: (body: Body) => Uint8Array | null

/** The base class of Request and Response. */
class Body {
  readonly headers: Headers
  readonly #bytes: Uint8Array | null
  #used = false

  static {
    bytesOf = (body) => body.#bytes
  }

  /** `isOwned` if no other code has the bytes, which then need no copy. */
  constructor(body: unknown, headers: Headers, isOwned = false) {
    const { bytes, type } = isOwned
      ? { bytes: body as Uint8Array | null, type: null }
      : readBody(body)
    this.#bytes = bytes
    this.headers = headers
    if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
  }

  get bodyUsed(): boolean {
    return this.#used
  }

  #take(): Uint8Array {
    if (this.#used) throw new TypeError('the body was read before: keep its first result')
    this.#used = this.#bytes !== null
    return this.#bytes ?? EMPTY
  }

  async bytes(): Promise<Uint8Array> {
    return this.#take().slice()
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer as ArrayBuffer
  }

  async text(): Promise<string> {
    return decoder.decode(this.#take())
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text())
  }
}

function methodOf(method: unknown): string {
  const text = `${method}`
  const upper = text.toUpperCase()
  if (COMMON_METHODS.includes(upper)) return upper
  if (METHOD.test(text) && upper !== 'CONNECT' && upper !== 'TRACE') return text
  throw new TypeError(`"${text.slice(0, 64)}" is no method that can be sent`)
}

export interface RequestInit {
  readonly method?: unknown
  readonly headers?: unknown
  readonly body?: unknown
  readonly redirect?: unknown
  readonly signal?: AbortSignal | null
}

export class Request extends Body {
  readonly url: string
  readonly method: string
  readonly redirect: string
  readonly signal: AbortSignal | null

  constructor(input: unknown, given?: RequestInit | null) {
    const init = given ?? {}
    const from = input instanceof Request ? input : null
    const body = init.body ?? (from === null ? null : bytesOf(from))
    super(body, new Headers(init.headers ?? from?.headers))
    this.url = from?.url ?? new URL(`${input}`).href
    this.method = methodOf(init.method ?? from?.method ?? 'GET')
    this.redirect = `${init.redirect ?? from?.redirect ?? 'follow'}`
    this.signal = init.signal ?? from?.signal ?? null
    if (!['follow', 'manual', 'error'].includes(this.redirect)) {
      throw new TypeError('redirect is "follow", "manual" or "error"')
    }
    if (bytesOf(this) !== null && (this.method === 'GET' || this.method === 'HEAD')) {
      throw new TypeError(`a ${this.method} request has no body: set method: "POST"`)
    }
  }

  clone(): Request {
    return new Request(this)
  }
}

interface ResponseInit {
  readonly status?: number
  readonly statusText?: string
  readonly headers?: unknown
}

/** Marks a response of the server for the constructor, which then accepts any status. */
const received = Symbol('received')

export class Response extends Body {
  readonly status: number
  readonly statusText: string
  /** The last address, if redirects were followed. */
  readonly url: string = ''
  readonly redirected: boolean = false

  constructor(body?: unknown, given?: ResponseInit | null, token?: unknown) {
    const init = given ?? {}
    super(body, new Headers(init.headers), token === received)
    this.status = init.status ?? 200
    this.statusText = init.statusText ?? ''
    if (token === received) return
    if (!Number.isInteger(this.status) || this.status < 200 || this.status > 599) {
      throw new RangeError('the status of a response is from 200 to 599')
    }
  }

  static json(data: unknown, init: ResponseInit = {}): Response {
    const headers = new Headers(init.headers)
    if (!headers.has('content-type')) headers.set('content-type', 'application/json')
    return new Response(JSON.stringify(data), { ...init, headers })
  }

  get ok(): boolean {
    return this.status < 300
  }

  clone(): Response {
    if (this.bodyUsed) throw new TypeError('the body was read before: clone it first')
    const { status, statusText, headers, url, redirected } = this
    const copy = new Response(bytesOf(this), { status, statusText, headers }, received)
    return Object.assign(copy, { url, redirected })
  }
}

export { bytesOf, received }
