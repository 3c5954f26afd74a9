/**
 * The loopback address that the provider sends the browser back to (RFC 8252, 7.3). It takes one
 * answer, the first that carries our state. Whatever any other page or program sends is refused
 * and changes nothing, so that nobody can end a login by knocking.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'
import { failed } from './answers.ts'
import { stateEquals } from './authorizations.ts'
import { PAGE_HEADERS, type PageName, pageOf } from './pages.ts'

export const LOGIN_DEADLINE_MS = 300_000
/** The literal address: `localhost` could be resolved elsewhere, and 0.0.0.0 is everybody. */
const HOST = '127.0.0.1'
const PATH = '/callback'
const CONNECTIONS_MAX = 32
const REQUEST_MS_MAX = 10_000
const PAGE_MS_MAX = 2_000

export interface CallbackAnswer {
  readonly parameters: URLSearchParams
  /** What the browser has waited for; settles when it is sent, or cannot be. */
  finish(page: PageName): Promise<void>
}

export class CallbackListener {
  readonly #state: Secret
  readonly #server: Server
  readonly #answered: Promise<CallbackAnswer>
  #settle: ((answer: CallbackAnswer) => void) | null = null
  #authority = ''

  private constructor(state: Secret) {
    this.#state = state
    this.#answered = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#server = createServer(
      { headersTimeout: REQUEST_MS_MAX, requestTimeout: REQUEST_MS_MAX },
      (request, response) => this.#receive(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Faults: CLIENT_BROWSER_LOGIN_FAILED where no port can be had. */
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

  /** Faults: CLIENT_INTERRUPTED; CLIENT_BROWSER_LOGIN_FAILED after `deadlineMs`. */
  answer(signal: AbortSignal, deadlineMs = LOGIN_DEADLINE_MS): Promise<CallbackAnswer> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => end(new Fault('CLIENT_INTERRUPTED'))
      const timer = setTimeout(() => {
        end(failed(`Nobody finished it within ${Math.round(deadlineMs / 1000)} seconds.`))
      }, deadlineMs)
      const end = (result: CallbackAnswer | Fault): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        if (result instanceof Fault) reject(result)
        else resolve(result)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      void this.#answered.then(end)
    })
  }

  close(): void {
    this.#settle = null
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const [path, query = ''] = splitOnce(request.url ?? '')
    const parameters = new URLSearchParams(query)
    const refusal = this.#refusalOf(request, path, parameters)
    if (refusal !== null) {
      if (refusal === 405) response.setHeader('allow', 'GET')
      void send(response, refusal, refusal === 410 ? 'over' : 'foreign')
      return
    }
    const settle = this.#settle
    this.#settle = null
    this.#server.close()
    settle?.({ parameters, finish: (page) => send(response, page === 'done' ? 200 : 400, page) })
  }

  /** The HTTP status; null for the answer to our request. */
  #refusalOf(request: IncomingMessage, path: string, parameters: URLSearchParams): number | null {
    if (this.#isForeign(request)) return 400
    if (path !== PATH) return 404
    if (request.method !== 'GET') return 405
    if (this.#settle === null) return 410
    const states = parameters.getAll('state')
    return states.length === 1 && stateEquals(this.#state, states[0]!) ? null : 400
  }

  /** A name that was made to resolve to the loopback address (DNS rebinding) is in Host. */
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
