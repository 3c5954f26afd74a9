/** Requests with exactly the given headers, as no HTTP client sends them, and those of browsers. */
import { connect } from 'node:net'

export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>

export interface RawRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderMap
  readonly body?: string
}

export interface Answered {
  readonly status: number
  /** The head in lower case. */
  readonly headers: string
  readonly body: string
}

/** The headers of a person who opens an address. */
export const DOCUMENT = {
  'sec-fetch-site': 'none',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
} as const

/** The headers of a script of a document. */
export const ASSET = {
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'no-cors',
  'sec-fetch-dest': 'script',
} as const

/** The headers of a link with `download` in Chromium. */
export const SAVED = {
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'empty',
} as const

/** The headers of `fetch` with a body of JSON in a page of the origin. */
export function headersOfCall(origin: string): Readonly<Record<string, string>> {
  return {
    origin,
    'content-type': 'application/json',
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
  }
}

/** Returns the head of a request; the value of a header may be several, or absent. */
export function rawHead(origin: string, { method, path, headers }: RawRequest): string {
  const all: HeaderMap = { host: new URL(origin).host, ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((each) => `${name}: ${each}`),
  )
  return [`${method} ${path} HTTP/1.1`, ...lines, 'connection: close', '', ''].join('\r\n')
}

/** Sends a request and reads the response, of which the body is Latin-1. */
export function rawRequest(origin: string, request: RawRequest): Promise<Answered> {
  const { method, headers, body = '' } = request
  const length = method === 'POST' ? { 'content-length': String(Buffer.byteLength(body)) } : {}
  const head = rawHead(origin, { ...request, headers: { ...length, ...headers } })
  return new Promise((resolve, reject) => {
    const { port } = new URL(origin)
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(head + body))
    let text = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const [first = '', ...rest] = text.split('\r\n\r\n')
      const status = Number(first.split(' ')[1] ?? 0)
      resolve({ status, headers: first.toLowerCase(), body: rest.join('\r\n\r\n') })
    })
  })
}
