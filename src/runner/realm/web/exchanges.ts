/** Request and Response, with bodies that are whole. */

import type { makeText } from '../text.ts'
import type { makeAborts } from './aborts.ts'
import type { makeHeaders } from './headers.ts'

type HeadersClass = ReturnType<typeof makeHeaders>
type Headers = InstanceType<HeadersClass>
type Signal = InstanceType<ReturnType<typeof makeAborts>['AbortSignal']>

/** What a body may be made of, as bytes, with the content type that it has by itself. */
export function makeBodyReader(
  { TextEncoder }: Pick<ReturnType<typeof makeText>, 'TextEncoder'>,
  URLSearchParams: new (...args: never[]) => { toString(): string },
) {
  const { isView } = ArrayBuffer
  const encoder = new TextEncoder()

  return (body: unknown): { bytes: Uint8Array | null; type: string | null } => {
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
}

/** What Request and Response have in common. */
export function makeBody(
  read: ReturnType<typeof makeBodyReader>,
  { TextDecoder }: Pick<ReturnType<typeof makeText>, 'TextDecoder'>,
) {
  const decoder = new TextDecoder()
  const empty = new Uint8Array(0)

  return class Body {
    readonly headers: Headers
    readonly #bytes: Uint8Array | null
    #used = false

    /** `isOwn` where the bytes are in no other hands, and need no copy. */
    constructor(body: unknown, headers: Headers, isOwn = false) {
      const { bytes, type } = isOwn ? { bytes: body as Uint8Array | null, type: null } : read(body)
      this.#bytes = bytes
      this.headers = headers
      if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
    }

    static bytesOf(body: Body): Uint8Array | null {
      return body.#bytes
    }

    get bodyUsed(): boolean {
      return this.#used
    }

    #take(): Uint8Array {
      if (this.#used) throw new TypeError('the body was read before: keep what it was')
      this.#used = this.#bytes !== null
      return this.#bytes ?? empty
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
}

interface RequestInit {
  readonly method?: unknown
  readonly headers?: unknown
  readonly body?: unknown
  readonly redirect?: unknown
  readonly signal?: Signal | null
}

export function makeRequest(
  Body: ReturnType<typeof makeBody>,
  Headers: HeadersClass,
  URL: new (text: string) => { readonly href: string },
) {
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/
  const common = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']
  const { bytesOf } = Body

  function methodOf(method: unknown): string {
    const text = `${method}`
    const upper = text.toUpperCase()
    if (common.includes(upper)) return upper
    if (token.test(text) && upper !== 'CONNECT' && upper !== 'TRACE') return text
    throw new TypeError(`"${text.slice(0, 64)}" is no method that can be sent`)
  }

  return class Request extends Body {
    readonly url: string
    readonly method: string
    readonly redirect: string
    readonly signal: Signal | null

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
}

interface ResponseInit {
  readonly status?: number
  readonly statusText?: string
  readonly headers?: unknown
}

/** `received` is shown for what the server answers, whatever its status is. */
export function makeResponse(
  Body: ReturnType<typeof makeBody>,
  Headers: HeadersClass,
  received: symbol,
) {
  const { bytesOf } = Body
  const { stringify } = JSON

  return class Response extends Body {
    readonly status: number
    readonly statusText: string
    /** Of the last address, where redirects were followed. */
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
      return new Response(stringify(data), { ...init, headers })
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
}
