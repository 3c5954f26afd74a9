/**
 * The one way to fetch a document whose URL comes from configuration or from another document. A
 * name is resolved once, every address that it has is checked, and the connection goes to a checked
 * address, so neither a redirect nor a second answer of the resolver leads into this network.
 * node:https, not fetch: Bun's fetch follows HTTPS_PROXY, which would resolve the name again.
 */
import { lookup } from 'node:dns/promises'
import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { Duplex } from 'node:stream'
import { isPublicAddress } from './public-addresses.ts'

export interface GuardedFetchOptions {
  /** Exact origins. */
  readonly allowedOrigins: readonly string[]
  /** Admits http to 127.0.0.0/8 or [::1], where such an origin is in the list. */
  readonly allowLoopbackHttp: boolean
  readonly bodyBytesMax: number
  /** Of everything from the resolver to the last byte, in milliseconds. */
  readonly timeoutMs: number
  /** Requests at one time; one more is refused, not queued. */
  readonly concurrencyMax: number
  /** The resolver and the network unless given. */
  readonly network?: Network
}

export interface Address {
  readonly address: string
}

/** What tests replace. */
export interface Network {
  resolve(hostname: string): Promise<readonly Address[]>
  /** Where a connection to a checked address really goes, and whom it trusts there. */
  dial(address: string, port: number): Dial
}

export interface Dial {
  readonly host: string
  readonly port: number
  /** PEM of the certificate authority; the machine's own unless given. */
  readonly authority?: string
}

export interface FetchedDocument {
  readonly status: number
  readonly body: Uint8Array
}

/** Why there is no document; for the log. */
export type FetchRefusal =
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

/** Names no URL: one could hold what its author wants to see in our log. */
export class FetchFailure extends Error {
  readonly reason: FetchRefusal

  constructor(reason: FetchRefusal, options: { readonly cause?: unknown } = {}) {
    super(`fetch refused: ${reason}`, options)
    this.name = 'FetchFailure'
    this.reason = reason
  }
}

/** Addresses tried in turn where one does not take the connection. */
const ADDRESSES_MAX = 4
/** Heads of status 1xx before the one that answers. */
const INFORMATION_MAX = 100

export const REAL_NETWORK: Network = {
  resolve: (hostname) => lookup(hostname, { all: true, verbatim: true }),
  dial: (host, port) => ({ host, port }),
}

interface Target {
  readonly url: URL
  readonly secure: boolean
  readonly port: number
  /** An address as it stands in the URL, without brackets; null for a name. */
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

  /** Throws FetchFailure. Any status but a redirect is an answer. */
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
      // Whatever still runs is cut: a slow sender keeps no connection.
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
    // Resolvers read a trailing dot as the same name; allow-lists and certificates do not.
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
        const failure = failureOf(error, signal)
        if (failure.reason !== 'connection' || i + 1 === addresses.length) throw failure
      }
    }
    throw new FetchFailure('name')
  }

  /** Every one is checked before the first is used: one private address refuses the whole name. */
  async #addresses({ url, secure, literal }: Target): Promise<readonly string[]> {
    if (literal !== null && !secure) return [literal]
    const found = literal === null ? await this.#resolve(url.hostname) : [literal]
    if (!found.every(isPublicAddress)) throw new FetchFailure('address')
    return inOrderOfTrial(found)
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

/** A broken IPv6 route is more common than a missing IPv4 one. */
export function inOrderOfTrial(addresses: readonly string[]): readonly string[] {
  const ipv4 = addresses.filter((address) => !address.includes(':'))
  const ipv6 = addresses.filter((address) => address.includes(':'))
  return [...ipv4, ...ipv6].slice(0, ADDRESSES_MAX)
}

export interface SentRequest {
  readonly url: URL
  readonly method: string
  /** All of them; none is added. */
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: Uint8Array | null
  readonly signal: AbortSignal
}

/**
 * Sends one request over a connection of its own, or over one that is open already; resolves with
 * the head of the response. Throws FetchFailure, and what the client throws.
 */
export function send(dial: Dial | Duplex, request: SentRequest): Promise<IncomingMessage> {
  const { url, method, headers, body, signal } = request
  return new Promise((resolve, reject) => {
    const options = { path: url.pathname + url.search, method, signal, headers }
    const made =
      dial instanceof Duplex
        ? requestHttp({ ...options, createConnection: () => dial })
        : requestOver(dial, url, options)
    made.on('error', reject)
    made.on('response', resolve)
    // All that comes of an answer that changes the protocol.
    made.on('close', () => reject(new FetchFailure('connection')))
    let heads = 0
    made.on('information', () => {
      heads += 1
      // Read without end, they take a processor.
      if (heads > INFORMATION_MAX) made.destroy(new FetchFailure('headers'))
    })
    made.end(body ?? undefined)
  })
}

function requestOver(dial: Dial, url: URL, options: RequestOptions): ClientRequest {
  const { host, port, authority } = dial
  // No pool: a connection of an earlier check would outlive that check.
  const connection = { ...options, host, port, agent: false as const }
  if (url.protocol !== 'https:') return requestHttp(connection)
  return requestHttps({
    ...connection,
    servername: literalAddress(url.hostname) === null ? url.hostname : '',
    ...(authority !== undefined && { ca: authority }),
  })
}

/** Of what `send` or `readBody` threw. */
export function failureOf(cause: unknown, signal: AbortSignal): FetchFailure {
  if (cause instanceof FetchFailure) return cause
  return new FetchFailure(signal.aborted ? 'time' : 'connection', { cause })
}

/** An address as it stands in a URL, without brackets; null for a name. */
export function literalAddress(hostname: string): string | null {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  // The URL parser has made dotted decimals of every other spelling of an IPv4 address.
  return /^[0-9]+(?:\.[0-9]+){3}$/.test(hostname) ? hostname : null
}

export interface BodyBounds {
  readonly bodyBytesMax: number
  /** Told of bytes before they are kept; throws FetchFailure where there is no room for them. */
  readonly hold?: (bytes: number) => void
}

/** Throws FetchFailure for a body over its bounds, and what a connection that ends early throws. */
export async function readBody(response: IncomingMessage, bounds: BodyBounds): Promise<Uint8Array> {
  if (Number(response.headers['content-length'] ?? 0) > bounds.bodyBytesMax) {
    throw new FetchFailure('size')
  }
  return gather(response, bounds)
}

/** Throws FetchFailure for more than the bounds allow, and what the source throws. */
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
