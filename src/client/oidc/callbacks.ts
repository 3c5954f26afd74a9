/**
 * The loopback address that the provider redirects the browser to (RFC 8252, 7.3). It accepts one
 * response, the first with the expected state. Requests of other pages or programs are rejected and
 * change nothing, so that they cannot end a login.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'
import { failed } from './authorization-responses.ts'
import { stateEquals } from './authorizations.ts'
import { PAGE_HEADERS, type PageName, pageOf } from './pages.ts'

export const LOGIN_DEADLINE_MS = 300_000
/** The literal address: `localhost` may resolve to another one, and 0.0.0.0 is public. */
const HOST = '127.0.0.1'
const PATH = '/callback'
const CONNECTIONS_MAX = 32
const REQUEST_MS_MAX = 10_000
const PAGE_MS_MAX = 2_000

export interface CallbackResponse {
  readonly parameters: URLSearchParams
  /** Sends the final page to the browser; resolves when it is sent or cannot be sent. */
  finish(page: PageName): Promise<void>
}

export class CallbackListener {
  readonly #state: Secret
  readonly #server: Server
  readonly #received: Promise<CallbackResponse>
  #resolve: ((response: CallbackResponse) => void) | null = null
  #authority = ''

  private constructor(state: Secret) {
    this.#state = state
    this.#received = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#server = createServer(
      { headersTimeout: REQUEST_MS_MAX, requestTimeout: REQUEST_MS_MAX },
      (request, response) => this.#receive(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Opens a port. Throws CLIENT_BROWSER_LOGIN_FAILED if there is none. */
  static async open(state: Secret): Promise<CallbackListener> {
    const listener = new CallbackListener(state)
    const server = listener.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', () => reject(failed(`No port of ${HOST} could be opened.`)))
      server.listen(0, HOST, () => resolve())
    })
    listener.#authority = `${HOST}:${(server.address() as AddressInfo).port}`
    return listener
  }

  get redirectUri(): string {
    return `http://${this.#authority}${PATH}`
  }

  /** Waits for the response. Throws CLIENT_INTERRUPTED, CLIENT_BROWSER_LOGIN_FAILED. */
  waitForResponse(signal: AbortSignal, deadlineMs = LOGIN_DEADLINE_MS): Promise<CallbackResponse> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => end(new Fault('CLIENT_INTERRUPTED'))
      const timer = setTimeout(() => {
        end(failed(`The login was not finished within ${Math.round(deadlineMs / 1000)} seconds.`))
      }, deadlineMs)
      const end = (result: CallbackResponse | Fault): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        if (result instanceof Fault) reject(result)
        else resolve(result)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      void this.#received.then(end)
    })
  }

  close(): void {
    this.#resolve = null
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const [path, query = ''] = splitOnce(request.url ?? '')
    const parameters = new URLSearchParams(query)
    const rejection = this.#rejectionOf(request, path, parameters)
    if (rejection !== null) {
      if (rejection === 405) response.setHeader('allow', 'GET')
      void send(response, rejection, rejection === 410 ? 'over' : 'foreign')
      return
    }
    const resolve = this.#resolve
    this.#resolve = null
    this.#server.close()
    resolve?.({ parameters, finish: (page) => send(response, page === 'done' ? 200 : 400, page) })
  }

  /** Returns the HTTP status of the rejection; null for the awaited response. */
  #rejectionOf(request: IncomingMessage, path: string, parameters: URLSearchParams): number | null {
    if (this.#isForeign(request)) return 400
    if (path !== PATH) return 404
    if (request.method !== 'GET') return 405
    if (this.#resolve === null) return 410
    const states = parameters.getAll('state')
    return states.length === 1 && stateEquals(this.#state, states[0]!) ? null : 400
  }

  /** Detects DNS rebinding: Host then has a name that resolves to the loopback address. */
  #isForeign({ rawHeaders }: IncomingMessage): boolean {
    const hosts = rawHeaders.filter((_, i) => i % 2 === 1 && isHost(rawHeaders[i - 1]))
    return hosts.length !== 1 || hosts[0] !== this.#authority
  }
}

function isHost(name: string | undefined): boolean {
  return name?.toLowerCase() === 'host'
}

function splitOnce(url: string): [string, string?] {
  const at = url.indexOf('?')
  return at === -1 ? [url] : [url.slice(0, at), url.slice(at + 1)]
}

function send(response: ServerResponse, status: number, page: PageName): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed || response.writableEnded) {
      resolve()
      return
    }
    const timer = setTimeout(resolve, PAGE_MS_MAX)
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    response.once('close', end)
    response.once('error', end)
    response.writeHead(status, PAGE_HEADERS)
    response.end(pageOf(page), end)
  })
}
