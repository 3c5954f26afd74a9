/**
 * Sends HTTP requests of Functions. As in guarded-fetch.ts, a name is resolved once, all its
 * addresses are checked and the connection goes to a checked one. The host of each hop is checked
 * too, and a redirect never changes the scheme.
 */
import type { IncomingMessage } from 'node:http'
import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { type AddressRange, isWithin } from './address-ranges.ts'
import {
  type Address,
  type BodyBounds,
  FetchFailure,
  gather,
  inConnectOrder,
  literalAddress,
  type Network,
  REAL_NETWORK,
  readBody,
  send,
  toFetchFailure,
} from './guarded-fetch.ts'
import { isPublicAddress } from './public-addresses.ts'

export interface OutboundOptions {
  /** Private networks that may be called, also without TLS. */
  readonly allowedNetworks: readonly AddressRange[]
  readonly responseBytesMax: number
  /** REAL_NETWORK by default. */
  readonly network?: Network | undefined
}

export type HeaderPair = readonly [name: string, value: string]

export interface OutboundRequest {
  readonly url: string
  readonly method: string
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array | null
  readonly redirect: 'follow' | 'manual' | 'error'
  /** Allowed hosts in the form of a URL, with the port unless it is the default of the scheme. */
  readonly hosts: readonly string[]
  readonly signal: AbortSignal
  /** Called before bytes are buffered. Throws FetchFailure where they exceed a memory limit. */
  readonly hold: (bytes: number) => void
  /** Headers that every hop gets unless `headers` has one of the name. */
  readonly traceHeaders?: readonly HeaderPair[]
}

export interface OutboundResponse {
  readonly status: number
  readonly statusText: string
  /** URL of the last hop. */
  readonly url: string
  readonly redirected: boolean
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array
}

const REDIRECTS_MAX = 10
const HEADERS_MAX = 100
const HEADER_CHARACTERS_MAX = 32 * 1024
const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Headers of the connection, which the caller cannot set. They are omitted, as in browsers. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Headers that are only sent to the first host. */
const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'cookie'])
const BODY_HEADERS = /^content-/

interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: readonly HeaderPair[]
  readonly body: Uint8Array | null
  readonly traceHeaders: readonly HeaderPair[]
}

export class OutboundFetch {
  readonly #options: OutboundOptions
  readonly #network: Network
  /** Pending lookups by name. Requests share them, since an abort cannot cancel a lookup. */
  readonly #lookups = new Map<string, Promise<readonly Address[]>>()

  constructor(options: OutboundOptions) {
    this.#options = options
    this.#network = options.network ?? REAL_NETWORK
  }

  /** Resolves for any status. Throws FetchFailure. */
  async fetch(request: OutboundRequest): Promise<OutboundResponse> {
    let hop: Hop = {
      url: parseUrl(request.url),
      method: request.method,
      headers: ownHeaders(request.headers),
      body: request.body,
      traceHeaders: traceHeaders(request),
    }
    for (let redirects = 0; ; redirects++) {
      const response = await this.#request(hop, request)
      const status = response.statusCode ?? 0
      const { location } = response.headers
      const isRedirect = REDIRECT_STATUS.has(status) && location !== undefined
      if (!isRedirect || request.redirect === 'manual') {
        const body = await this.#body(response, hop, request)
        return {
          status,
          statusText: response.statusMessage ?? '',
          url: hop.url.href,
          redirected: redirects > 0,
          headers: headersOf(response),
          body,
        }
      }
      response.destroy()
      if (request.redirect === 'error' || redirects === REDIRECTS_MAX) {
        throw new FetchFailure('redirect')
      }
      hop = nextHop(hop, status, location)
    }
  }

  async #body(
    response: IncomingMessage,
    { method }: Hop,
    { signal, hold }: OutboundRequest,
  ): Promise<Uint8Array> {
    const bounds = { bodyBytesMax: this.#options.responseBytesMax, hold }
    try {
      // The declared length of a response to HEAD is that of a body that is not sent.
      if (method === 'HEAD') return new Uint8Array(0)
      const encoding = response.headers['content-encoding']
      return await decoded(await readBody(response, bounds), encoding, bounds)
    } catch (error) {
      throw toFetchFailure(error, signal)
    } finally {
      response.destroy()
    }
  }

  async #request(hop: Hop, { hosts, signal }: OutboundRequest): Promise<IncomingMessage> {
    const { url } = hop
    const secure = url.protocol === 'https:'
    const port = Number(url.port || (secure ? 443 : 80))
    if (!hosts.includes(url.host) && !hosts.includes(`${url.hostname}:${port}`)) {
      throw new FetchFailure('origin')
    }
    const addresses = await this.#addresses(url, secure, signal)
    for (const [i, address] of addresses.entries()) {
      try {
        return await send(this.#network.dial(address, port), {
          ...hop,
          headers: Object.fromEntries(groupedHeaders(hop)),
          signal,
        })
      } catch (error) {
        const failure = toFetchFailure(error, signal)
        // A body may have been sent in part, so that another attempt would repeat the request.
        const next = i + 1 < addresses.length && hop.body === null
        if (failure.reason !== 'connection' || !next) throw failure
      }
    }
    throw new FetchFailure('name')
  }

  /** Checks all addresses: one that is neither public nor allowed rejects the name. */
  async #addresses(url: URL, secure: boolean, signal: AbortSignal): Promise<readonly string[]> {
    const { allowedNetworks } = this.#options
    // Allowed hosts are names, never addresses.
    if (literalAddress(url.hostname) !== null) throw new FetchFailure('origin')
    let found: readonly Address[]
    try {
      found = await unlessAborted(signal, this.#lookup(url.hostname))
    } catch {
      throw new FetchFailure(signal.aborted ? 'time' : 'name')
    }
    if (found.length === 0) throw new FetchFailure('name')
    const addresses = found.map(({ address }) => address)
    const isAllowed = (address: string) => isWithin(address, allowedNetworks)
    if (!addresses.every((address) => isPublicAddress(address) || isAllowed(address))) {
      throw new FetchFailure('address')
    }
    if (!secure && !addresses.every(isAllowed)) throw new FetchFailure('scheme')
    return inConnectOrder(addresses)
  }

  #lookup(hostname: string): Promise<readonly Address[]> {
    const known = this.#lookups.get(hostname)
    if (known !== undefined) return known
    const lookup = this.#network.resolve(hostname).finally(() => this.#lookups.delete(hostname))
    this.#lookups.set(hostname, lookup)
    return lookup
  }
}

/** Waits for a promise, and throws at once when the signal is aborted. */
async function unlessAborted<T>(signal: AbortSignal, pending: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  try {
    if (signal.aborted) onAbort()
    return await Promise.race([promise, pending])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw new FetchFailure('url')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new FetchFailure('url')
  if (url.username !== '' || url.password !== '') throw new FetchFailure('url')
  url.hash = ''
  return url
}

function ownHeaders(headers: readonly HeaderPair[]): HeaderPair[] {
  const kept = headers.filter(([name]) => !CONNECTION_HEADERS.has(name.toLowerCase()))
  const characters = kept.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (kept.length > HEADERS_MAX || characters > HEADER_CHARACTERS_MAX) {
    throw new FetchFailure('headers')
  }
  for (const [name, value] of kept) {
    const fits =
      /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
    if (!fits) throw new FetchFailure('headers')
  }
  return kept
}

/** A request of the author's own trace has no other: the headers belong together. */
function traceHeaders({ headers, traceHeaders: given = [] }: OutboundRequest) {
  const isOwn = headers.some(([name]) => name.toLowerCase() === 'traceparent')
  return isOwn ? [] : given
}

/** The headers that are sent. A repeated name keeps all its values. */
function groupedHeaders({
  url,
  headers,
  body,
  method,
  traceHeaders,
}: Hop): Map<string, string | string[]> {
  const grouped = new Map<string, string | string[]>([
    ['user-agent', 'svc'],
    ['accept', '*/*'],
    ...traceHeaders,
  ])
  const own = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    own.set(key, [...(own.get(key) ?? []), value])
  }
  for (const [name, values] of own) {
    grouped.set(name, name === 'cookie' ? values.join('; ') : values.join(', '))
  }
  grouped.set('host', url.host)
  grouped.set('accept-encoding', 'identity')
  grouped.set('connection', 'close')
  if (body !== null || !/^(?:GET|HEAD)$/.test(method)) {
    grouped.set('content-length', String(body?.length ?? 0))
  }
  return grouped
}

function nextHop(hop: Hop, status: number, location: string): Hop {
  if (!URL.canParse(location, hop.url)) throw new FetchFailure('redirect')
  const url = parseUrl(new URL(location, hop.url).href)
  if (url.protocol !== hop.url.protocol) throw new FetchFailure('redirect')
  const becomesGet =
    (status === 303 && hop.method !== 'HEAD') ||
    ((status === 301 || status === 302) && hop.method === 'POST')
  const leaves = url.host !== hop.url.host
  const headers = hop.headers.filter(([name]) => {
    const key = name.toLowerCase()
    return !(leaves && CREDENTIAL_HEADERS.has(key)) && !(becomesGet && BODY_HEADERS.test(key))
  })
  const next = { ...hop, url, headers }
  return becomesGet ? { ...next, method: 'GET', body: null } : next
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Decompresses the body of a server that compresses despite `accept-encoding: identity`. */
async function decoded(
  body: Uint8Array,
  encoding: string | undefined,
  bounds: BodyBounds,
): Promise<Uint8Array> {
  const name = encoding?.trim().toLowerCase() ?? 'identity'
  if (name === 'identity' || body.length === 0) return body
  const decoder = Object.hasOwn(DECODERS, name) ? DECODERS[name]!() : null
  if (decoder === null) throw new FetchFailure('encoding')
  decoder.end(body)
  try {
    return await gather(decoder, bounds)
  } catch (cause) {
    throw cause instanceof FetchFailure ? cause : new FetchFailure('encoding', { cause })
  }
}

function headersOf({ rawHeaders }: IncomingMessage): HeaderPair[] {
  const pairs: HeaderPair[] = []
  let characters = 0
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!]
    characters += name.length + value.length
    if (pairs.length === HEADERS_MAX || characters > HEADER_CHARACTERS_MAX) {
      throw new FetchFailure('headers')
    }
    pairs.push([name, value])
  }
  return pairs
}
