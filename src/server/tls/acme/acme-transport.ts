/**
 * The requests of an order: to the origin of the directory alone, bounded in size, time and number,
 * without redirects. Statuses from 400 are failures, except that of an outdated nonce, which the
 * library repeats.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { FetchFailure, literalAddress, readBody, send } from '../../../system/guarded-fetch.ts'
import type { System } from '../../../system/system.ts'
import { BUILD_VERSION } from '../../../value/version.ts'
import { AcmeFailure, problemText, reasonOfFailure } from './acme-failure.ts'

/** @limit TLS: bytes of a response of the ACME authority */
export const RESPONSE_BYTES_MAX = 256 * 1024
/** @limit TLS: time of a request to the ACME authority */
export const REQUEST_MILLIS_MAX = 30_000
/** @limit TLS: requests of one order to the ACME authority */
export const REQUESTS_MAX = 400
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce'
const RETRY_SECONDS_MAX = 7 * 86_400

export interface AcmeTransportOptions {
  readonly directoryUrl: string
  /** PEM; null for the authorities of the system. */
  readonly authority: string | null
  readonly system: Pick<System, 'nowMillis'>
  readonly signal: AbortSignal
}

export interface AcmeRequest {
  readonly url: string
  readonly method: string
  /** JSON; null without a body. */
  readonly body: string | null
}

export interface AcmeResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export class AcmeTransport {
  readonly #options: AcmeTransportOptions
  readonly #origin: string
  #requests = 0

  constructor(options: AcmeTransportOptions) {
    this.#options = options
    this.#origin = new URL(options.directoryUrl).origin
  }

  /** Throws AcmeFailure. */
  async request({ url: text, method, body }: AcmeRequest): Promise<AcmeResponse> {
    const url = URL.canParse(text) ? new URL(text) : null
    if (url?.origin !== this.#origin) {
      throw new AcmeFailure('the directory names an address of another origin')
    }
    this.#requests += 1
    if (this.#requests > REQUESTS_MAX) throw new AcmeFailure('the order takes too many requests')
    const late = AbortSignal.timeout(REQUEST_MILLIS_MAX)
    const signal = AbortSignal.any([this.#options.signal, late])
    const response = await this.#send(url, method, body, signal).catch((cause) => {
      const reason = signal.aborted ? 'no response in time' : reasonOfConnection(cause)
      throw new AcmeFailure(`${url.host}: ${reason}`, { cause })
    })
    requireSuccess(response, this.#options.system.nowMillis())
    return response
  }

  async #send(
    url: URL,
    method: string,
    body: string | null,
    signal: AbortSignal,
  ): Promise<AcmeResponse> {
    const content = body === null ? null : new TextEncoder().encode(body)
    const { authority } = this.#options
    const dial = {
      host: literalAddress(url.hostname) ?? url.hostname,
      port: Number(url.port || 443),
      ...(authority !== null && { authority }),
    }
    const headers = {
      host: url.host,
      accept: '*/*',
      'accept-encoding': 'identity',
      'accept-language': 'en',
      'user-agent': `svc-server/${BUILD_VERSION}`,
      connection: 'close',
      ...(content !== null && {
        'content-type': 'application/jose+json',
        'content-length': String(content.length),
      }),
    }
    const response = await send(dial, { url, method, headers, body: content, signal })
    try {
      const bytes = await readBody(response, { bodyBytesMax: RESPONSE_BYTES_MAX })
      const text = new TextDecoder().decode(bytes)
      return { status: response.statusCode ?? 0, headers: response.headers, body: text }
    } catch (error) {
      response.destroy()
      throw error
    }
  }
}

function reasonOfConnection(cause: unknown): string {
  if (cause instanceof FetchFailure && cause.reason === 'size') return 'the response is too large'
  if (cause instanceof FetchFailure && cause.reason !== 'connection') return cause.reason
  const { code } = cause as { readonly code?: unknown }
  return typeof code === 'string' ? code : reasonOfFailure(cause)
}

function requireSuccess({ status, headers, body }: AcmeResponse, nowMillis: number): void {
  if (status >= 200 && status < 300) return
  if (status < 400) throw new AcmeFailure(`the authority answered ${status}`)
  const problem = parsed(body)
  if (status === 400 && (problem as { readonly type?: unknown } | null)?.type === BAD_NONCE) return
  throw new AcmeFailure(`the authority answered ${status}: ${problemText(problem)}`, {
    retryAfterMillis: retryAfterMillis(headers['retry-after'], nowMillis),
  })
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

/** Returns the pause that a header asks for, in seconds or as a date; null without a valid one. */
export function retryAfterMillis(value: string | undefined, nowMillis: number): number | null {
  if (value === undefined) return null
  const seconds = /^[0-9]{1,9}$/.test(value)
    ? Number(value)
    : (Date.parse(value) - nowMillis) / 1_000
  if (!Number.isFinite(seconds)) return null
  return Math.min(RETRY_SECONDS_MAX, Math.max(0, seconds)) * 1_000
}
