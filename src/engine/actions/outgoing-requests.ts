/** Sends the requests of `fetch` in Actions, and turns failures into errors for the author. */
import type { FetchRequest } from '../../runner/protocol/operations.ts'
import type { AddressRange } from '../../system/address-ranges.ts'
import { FetchFailure, type Network } from '../../system/guarded-fetch.ts'
import {
  OutboundFetch,
  type OutboundRequest,
  type OutboundResponse,
} from '../../system/outbound-fetch.ts'
import type { Span, SpanStart } from '../../telemetry/traces/spans.ts'
import { OperationError } from '../calls/operation-error.ts'
import { REQUESTS_BYTES_MAX, REQUESTS_IN_FLIGHT_MAX, RESPONSE_BYTES_MAX } from '../limits.ts'
import type { RunnerPool } from '../runners/runner-pool.ts'
import { Semaphore } from './semaphore.ts'

export interface RequestsOptions {
  /** Networks that are not public and that Actions may reach. */
  readonly allowedNetworks: readonly AddressRange[]
  /** A replacement for tests. */
  readonly network?: Network | undefined
  /** Answers all requests, in place of the network. */
  readonly substitute?: Pick<OutboundFetch, 'fetch'> | undefined
}

export interface RequestTerms {
  /** The hosts that the Action declares. */
  readonly hosts: readonly string[]
  /** Bounds the concurrent requests of the Action. */
  readonly semaphore: Semaphore
  readonly signal: AbortSignal
  /** The span of the Action; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
}

/** Reserves bytes until the task ends. Throws beyond the bound. */
type Reserve = (bytes: number) => void

export class Requests {
  readonly #outbound: Pick<OutboundFetch, 'fetch'>
  readonly #runners: Pick<RunnerPool, 'actionBacklogBytes'>
  readonly #semaphore = new Semaphore(REQUESTS_IN_FLIGHT_MAX)
  /** Bytes of the requests in progress, including the received parts of their responses. */
  #reserved = 0

  constructor(options: RequestsOptions, runners: Pick<RunnerPool, 'actionBacklogBytes'>) {
    this.#outbound =
      options.substitute ?? new OutboundFetch({ ...options, responseBytesMax: RESPONSE_BYTES_MAX })
    this.#runners = runners
  }

  /** Returns the stored JSON of a FetchReply. Throws OperationError for a failed request. */
  async perform(
    request: FetchRequest,
    { hosts, semaphore, signal, trace }: RequestTerms,
  ): Promise<string> {
    const sendIn = (reserve: Reserve) => () => {
      const body = request.body === null ? null : Uint8Array.fromBase64(request.body)
      const sent = { ...request, body, hosts, signal, hold: reserve }
      return trace ? this.#traced(sent, trace) : this.#outbound.fetch(sent)
    }
    try {
      return await this.#reserving(async (reserve) => {
        reserve(charactersOf(request))
        const send = sendIn(reserve)
        return replyText(await semaphore.use(signal, () => this.#semaphore.use(signal, send)))
      })
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      throw new OperationError('TypeError', `fetch: ${explain(error, request.url)}`)
    }
  }

  /** Sends a request whose destination may continue the trace. */
  async #traced(request: OutboundRequest, trace: Span): Promise<OutboundResponse> {
    const span = trace.child(requestSpan(request))
    try {
      const response = await this.#outbound.fetch({ ...request, traceHeaders: span.headers() })
      const { status } = response
      const attributes = { 'http.response.status_code': status }
      span.end(status < 400 ? { attributes } : { attributes, error: String(status) })
      return response
    } catch (error) {
      span.end({ error: error instanceof FetchFailure ? error.reason : 'INTERNAL' })
      throw error
    }
  }

  /**
   * Runs a task that reserves the bytes which it holds, within the bound of all requests. Rejects
   * with OperationError beyond the bound.
   */
  async bounded<T>(task: (reserve: Reserve) => Promise<T>): Promise<T> {
    try {
      return await this.#reserving(task)
    } catch (error) {
      if (!(error instanceof FetchFailure)) throw error
      throw new OperationError('ServiceError', `ctx.storage: ${explain(error, '')}`, 'BUSY')
    }
  }

  async #reserving<T>(task: (reserve: Reserve) => Promise<T>): Promise<T> {
    let reserved = 0
    const reserve = (bytes: number) => {
      // A reply counts until its runner has read it, so a runner that never reads is bounded too.
      const total = this.#reserved + this.#runners.actionBacklogBytes() + bytes
      if (total > REQUESTS_BYTES_MAX) throw new FetchFailure('busy')
      this.#reserved += bytes
      reserved += bytes
    }
    try {
      return await task(reserve)
    } finally {
      this.#reserved -= reserved
    }
  }
}

/** Methods of which spans have the name; any other text may be a secret in the wrong place. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** A host is shown only where the Action declares it. Paths and queries are never shown. */
function requestSpan({ url, method, hosts }: OutboundRequest): SpanStart {
  const isKnown = METHODS.includes(method)
  const { hostname, port, protocol } = URL.parse(url) ?? { hostname: '', port: '', protocol: '' }
  const number = port || (protocol === 'https:' ? '443' : '80')
  const isShown = hosts.includes(hostname) || hosts.includes(`${hostname}:${number}`)
  return {
    name: isKnown ? method : 'HTTP',
    kind: 'client',
    attributes: {
      'http.request.method': isKnown ? method : '_OTHER',
      ...(isShown && { 'server.address': hostname, 'server.port': Number(number) }),
    },
  }
}

/** Returns the size of a request without its method. */
export function charactersOf({ url, headers, body }: FetchRequest): number {
  const ofHeaders = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return url.length + ofHeaders + (body?.length ?? 0)
}

function replyText({ body, ...head }: OutboundResponse): string {
  const bytes = { $b: Buffer.from(body.buffer, body.byteOffset, body.length).toString('base64url') }
  return JSON.stringify({ ...head, body: bytes })
}

/** Returns the error message for the author of the Action. */
function explain({ reason, cause }: FetchFailure, text: string): string {
  const host = URL.canParse(text) ? new URL(text).host.slice(0, 260) : 'it'
  const variable = 'SERVICE_ACTION_ALLOWED_NETWORKS'
  switch (reason) {
    case 'url':
      return 'the URL must be https://host/path, without a user name'
    case 'origin':
      return `"${host}", or where it redirects to, is not in uses.network of this Action: add it`
    case 'scheme':
      return `http is for networks of ${variable}, which the operator sets: use https`
    case 'address':
      return `"${host}" has an address that is not public: the operator must list it in ${variable}`
    case 'name':
      return `"${host}" has no address`
    case 'redirect':
      return 'a redirect that is not followed: too many, another scheme, or redirect: "error"'
    case 'size':
      return `the response has more than ${RESPONSE_BYTES_MAX} bytes`
    case 'headers':
      return 'a header is malformed, or there are more than 100 headers or 32 KiB of them'
    case 'encoding':
      return 'the response is compressed in a way that cannot be undone'
    case 'time':
      return 'it was aborted'
    case 'busy':
      return `requests of all Actions hold over ${REQUESTS_BYTES_MAX} bytes: retry later`
    case 'connection':
      return `"${host}" cannot be reached, or breaks off${codeOf(cause)}`
  }
}

/** Returns the code of a system error, such as " (ECONNREFUSED)"; empty without one. */
function codeOf(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' ? ` (${code})` : ''
}
