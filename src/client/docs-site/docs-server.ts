/**
 * The loopback server of `svc docs --serve`. It has no state and no secrets: every program of this
 * machine may read the documents. A page of another site may not embed them, and a name that
 * resolves to the loopback address (DNS rebinding) is rejected.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from '../../errors/fault.ts'
import type { SiteFile } from '../../site/site.ts'
import { headerValues } from '../console/request-checks.ts'

/** The literal address: `localhost` may resolve to another one, and 0.0.0.0 is public. */
const HOST = '127.0.0.1'
const INDEX = 'index.html'
const CONNECTIONS_MAX = 64
const REQUEST_MS_MAX = 30_000
const HEADER_BYTES_MAX = 16 * 1024

const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-cache',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** The files that are served. */
export interface ServedSite {
  file(path: string): SiteFile | null
}

export class DocsServer {
  readonly #site: ServedSite
  readonly #server: Server
  #authority = ''

  private constructor(site: ServedSite) {
    this.#site = site
    this.#server = createServer(
      {
        headersTimeout: REQUEST_MS_MAX,
        requestTimeout: REQUEST_MS_MAX,
        maxHeaderSize: HEADER_BYTES_MAX,
      },
      (request, response) => this.#answer(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Opens a port of the loopback address; 0 is any. Throws CLIENT_FAILED if it is taken. */
  static async open(site: ServedSite, port: number): Promise<DocsServer> {
    const opened = new DocsServer(site)
    const server = opened.#server
    await new Promise<void>((resolve, reject) => {
      const place = port === 0 ? `No port of ${HOST}` : `The port ${port} of ${HOST}`
      const detail = `${place} could not be opened. Choose another one with --port.`
      server.once('error', () => reject(new Fault('CLIENT_FAILED', { detail })))
      server.listen(port, HOST, () => resolve())
    })
    opened.#authority = `${HOST}:${(server.address() as AddressInfo).port}`
    return opened
  }

  get url(): string {
    return `http://${this.#authority}/`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const hosts = headerValues(request, 'host')
    const isOwn = hosts.length === 1 && hosts[0] === this.#authority
    const reads = request.method === 'GET' || request.method === 'HEAD'
    const path = (request.url ?? '').split('?')[0]!
    const file = isOwn && reads ? this.#site.file(path === '/' ? INDEX : path.slice(1)) : null
    if (file !== null) respond(response, 200, file)
    else if (!isOwn) reject(response, 403)
    else reject(response, reads ? 404 : 405)
  }
}

function reject(response: ServerResponse, status: number): void {
  if (status === 405) response.setHeader('allow', 'GET, HEAD')
  respond(response, status, { type: 'text/plain; charset=utf-8', text: `${status}\n` })
}

/** Sends a whole response; Node leaves out the body where the method is HEAD. */
function respond(response: ServerResponse, status: number, { type, text }: SiteFile): void {
  const length = Buffer.byteLength(text)
  response.writeHead(status, { ...HEADERS, 'content-type': type, 'content-length': length })
  response.end(text)
}
