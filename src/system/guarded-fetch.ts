/**
 * Fetches documents whose URL comes from settings or from another document. A name is resolved
 * once, all its addresses are checked, and the connection goes to a checked address, so neither a
 * redirect nor a second DNS response reaches the private network. It uses node:https, since Bun's
 * fetch follows HTTPS_PROXY, and a proxy would resolve the name again.
 */
import { lookup } from 'node:dns/promises'
import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { Duplex, pipeline, type Readable } from 'node:stream'
import { isPublicAddress } from './public-addresses.ts'

export interface GuardedFetchOptions {
  /** Exact origins that may be requested. */
  readonly allowedOrigins: readonly string[]
  /** Allows http to 127.0.0.0/8 and [::1] for origins in the list. */
  readonly allowLoopbackHttp: boolean
  readonly bodyBytesMax: number
  /** Timeout of the whole request, from DNS to the last byte, in milliseconds. */
  readonly timeoutMs: number
  /** Concurrent requests. Further ones are rejected, not queued. */
  readonly concurrencyMax: number
  /** REAL_NETWORK by default. */
  readonly network?: Network
}

export interface Address {
  readonly address: string
}

/** DNS and connections, which tests replace. */
export interface Network {
  resolve(hostname: string): Promise<readonly Address[]>
  /** Destination and trusted authority of a connection to a checked address. */
  dial(address: string, port: number): Dial
}

export interface Dial {
  readonly host: string
  readonly port: number
  /** PEM of the trusted certificate authority; those of the system by default. */
  readonly authority?: string
}

export interface FetchedDocument {
  readonly status: number
  readonly body: Uint8Array
}

/** Reason of a failed fetch, for the log. */
export type FetchFailureReason =
  | 'url'
  | 'origin'
  | 'name'
  | 'address'
  | 'redirect'
  | 'size'
  | 'time'
  | 'busy'
  | 'connection'
  | 'scheme'
  | 'headers'
  | 'encoding'

/** A failed fetch. It does not name the URL, whose author could inject text into the log. */
export class FetchFailure extends Error {
  readonly reason: FetchFailureReason

  constructor(reason: FetchFailureReason, options: { readonly cause?: unknown } = {}) {
    super(`fetch failed: ${reason}`, options)
    this.name = 'FetchFailure'
    this.reason = reason
  }
}

/** Addresses that are tried one after the other until one accepts the connection. */
const ADDRESSES_MAX = 4
/** Informational responses (1xx) before the final one. */
const INFORMATION_MAX = 100

export const REAL_NETWORK: Network = {
  resolve: (hostname) => lookup(hostname, { all: true, verbatim: true }),
  dial: (host, port) => ({ host, port }),
}

interface Target {
  readonly url: URL
  readonly secure: boolean
  readonly port: number
  /** The address in the URL, without brackets; null for a name. */
  readonly literal: string | null
}

export class GuardedFetch {
  readonly #options: GuardedFetchOptions
  readonly #origins: ReadonlySet<string>
  readonly #network: Network
  #running = 0

  constructor(options: GuardedFetchOptions) {
    this.#options = options
    this.#origins = new Set(options.allowedOrigins)
    this.#network = options.network ?? REAL_NETWORK
  }

  /** Resolves for any status except redirects. Throws FetchFailure. */
  async get(url: string): Promise<FetchedDocument> {
    const target = this.#target(url)
    if (this.#running >= this.#options.concurrencyMax) throw new FetchFailure('busy')
    this.#running += 1
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new FetchFailure('time')), this.#options.timeoutMs)
    })
    try {
      return await Promise.race([this.#fetch(target, ended.signal), late])
    } finally {
      clearTimeout(timer)
      // Aborts what is still running: a slow server must not keep a connection.
      ended.abort()
      this.#running -= 1
    }
  }

  #target(text: string): Target {
    if (!URL.canParse(text)) throw new FetchFailure('url')
    const url = new URL(text)
    const secure = url.protocol === 'https:'
    if (!secure && url.protocol !== 'http:') throw new FetchFailure('url')
    if (url.username !== '' || url.password !== '' || url.href.includes('#')) {
      throw new FetchFailure('url')
    }
    // A trailing dot is the same name for resolvers, but not for allow-lists and certificates.
    if (url.hostname.endsWith('.')) throw new FetchFailure('url')
    if (!this.#origins.has(url.origin)) throw new FetchFailure('origin')
    const literal = literalAddress(url.hostname)
    const loopback = literal !== null && (literal === '::1' || literal.startsWith('127.'))
    if (!secure && !(loopback && this.#options.allowLoopbackHttp)) throw new FetchFailure('url')
    const port = Number(url.port || (secure ? 443 : 80))
    return { url, secure, port, literal }
  }

  async #fetch(target: Target, signal: AbortSignal): Promise<FetchedDocument> {
    const addresses = await this.#addresses(target)
    for (const [i, address] of addresses.entries()) {
      try {
        return await this.#request(target, address, signal)
      } catch (error) {
        const failure = toFetchFailure(error, signal)
        if (failure.reason !== 'connection' || i + 1 === addresses.length) throw failure
      }
    }
    throw new FetchFailure('name')
  }

  /** Checks all addresses before the first one is used: one private address rejects the name. */
  async #addresses({ url, secure, literal }: Target): Promise<readonly string[]> {
    if (literal !== null && !secure) return [literal]
    const found = literal === null ? await this.#resolve(url.hostname) : [literal]
    if (!found.every(isPublicAddress)) throw new FetchFailure('address')
    return inConnectOrder(found)
  }

  async #resolve(hostname: string): Promise<readonly string[]> {
    let found: readonly Address[]
    try {
      found = await this.#network.resolve(hostname)
    } catch {
      throw new FetchFailure('name')
    }
    if (found.length === 0) throw new FetchFailure('name')
    return found.map(({ address }) => address)
  }

  async #request(target: Target, address: string, signal: AbortSignal): Promise<FetchedDocument> {
    const { url } = target
    const dial = this.#network.dial(address, target.port)
    const headers = {
      host: url.host,
      accept: 'application/json',
      'accept-encoding': 'identity',
      connection: 'close',
    }
    const response = await send(dial, { url, method: 'GET', headers, body: null, signal })
    const status = response.statusCode ?? 0
    try {
      if (status >= 300 && status < 400) throw new FetchFailure('redirect')
      return { status, body: await readBody(response, this.#options) }
    } catch (error) {
      response.destroy()
      throw error
    }
  }
}

/** Orders addresses, IPv4 first: a broken IPv6 route is more common than a missing IPv4 one. */
export function inConnectOrder(addresses: readonly string[]): readonly string[] {
  const ipv4 = addresses.filter((address) => !address.includes(':'))
  const ipv6 = addresses.filter((address) => address.includes(':'))
  return [...ipv4, ...ipv6].slice(0, ADDRESSES_MAX)
}

export interface SentRequest {
  readonly url: URL
  readonly method: string
  /** The complete headers: the fetch adds none. */
  readonly headers: Readonly<Record<string, string | string[]>>
  /** A stream is read as fast as the server takes it; the headers have its length. */
  readonly body: Uint8Array | Readable | null
  readonly signal: AbortSignal
}

/**
 * Sends one request over a new connection, or over one that is open already. Resolves to the head
 * of the response. Throws FetchFailure and errors of the HTTP client.
 */
export function send(dial: Dial | Duplex, request: SentRequest): Promise<IncomingMessage> {
  const { url, method, headers, body, signal } = request
  return new Promise((resolve, reject) => {
    const options = { path: url.pathname + url.search, method, signal, headers }
    const outgoing =
      dial instanceof Duplex
        ? requestHttp({ ...options, createConnection: () => dial })
        : requestOver(dial, url, options)
    outgoing.on('error', reject)
    outgoing.on('response', resolve)
    // After a response that switches protocols no other event follows.
    outgoing.on('close', () => reject(new FetchFailure('connection')))
    let informational = 0
    outgoing.on('information', () => {
      informational += 1
      // An endless sequence of them would occupy a processor.
      if (informational > INFORMATION_MAX) outgoing.destroy(new FetchFailure('headers'))
    })
    if (body === null || body instanceof Uint8Array) outgoing.end(body ?? undefined)
    // The request reports the error of its connection; that of the stream ends the request.
    else pipeline(body, outgoing, (error) => error && reject(error))
  })
}

function requestOver(dial: Dial, url: URL, options: RequestOptions): ClientRequest {
  const { host, port, authority } = dial
  // Without a pool, since a connection must not outlive the check of its address.
  const connection = { ...options, host, port, agent: false as const }
  if (url.protocol !== 'https:') return requestHttp(connection)
  return requestHttps({
    ...connection,
    servername: literalAddress(url.hostname) === null ? url.hostname : '',
    ...(authority !== undefined && { ca: authority }),
  })
}

/** Converts an error of `send` or `readBody`. */
export function toFetchFailure(cause: unknown, signal: AbortSignal): FetchFailure {
  if (cause instanceof FetchFailure) return cause
  return new FetchFailure(signal.aborted ? 'time' : 'connection', { cause })
}

/** Returns the address of a URL's hostname, without brackets; null for a name. */
export function literalAddress(hostname: string): string | null {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  // The URL parser converts every other notation of an IPv4 address to dotted decimals.
  return /^[0-9]+(?:\.[0-9]+){3}$/.test(hostname) ? hostname : null
}

export interface BodyBounds {
  readonly bodyBytesMax: number
  /** Called before bytes are buffered. Throws FetchFailure where they exceed a memory limit. */
  readonly hold?: (bytes: number) => void
}

/** Reads a body. Throws FetchFailure beyond the bounds, and an error of a truncated response. */
export async function readBody(response: IncomingMessage, bounds: BodyBounds): Promise<Uint8Array> {
  if (Number(response.headers['content-length'] ?? 0) > bounds.bodyBytesMax) {
    throw new FetchFailure('size')
  }
  return gather(response, bounds)
}

/** Buffers a stream. Throws FetchFailure beyond the bounds, and errors of the stream. */
export async function gather(
  source: AsyncIterable<Uint8Array>,
  { bodyBytesMax, hold }: BodyBounds,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (size > bodyBytesMax) throw new FetchFailure('size')
    hold?.(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
