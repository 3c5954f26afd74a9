/**
 * Serves the metrics of the linked Environment at a loopback address, for a collector that cannot
 * renew an access token. Each request reads the server once under the session of the operator.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault, isFault } from '../../../errors/fault.ts'
import { readMetrics } from '../../../wire/operations/metrics.ts'
import type { Context } from '../../contexts.ts'
import { systemCode } from '../../requests/requests.ts'
import type { Remote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'

export interface ListenAddress {
  readonly host: '127.0.0.1' | '[::1]'
  /** 0 for any port. */
  readonly port: number
}

const TEXT_TYPE = 'text/plain; version=0.0.4'
const PATH = '/metrics'
const CONNECTIONS_MAX = 32
const REQUEST_MS_MAX = 10_000
/** Characters of the text of one collection, which has some 20,000. */
const TEXT_CHARACTERS_MAX = 4 * 1024 * 1024
/** The only metric of the exporter itself; an alert on it asks for the next login in time. */
const SESSION_END = 'svc_exporter_session_end_time_seconds'

/** Returns null unless the text is a loopback address and a port. */
export function parseListenAddress(text: string): ListenAddress | null {
  const [, host, port] = /^(127\.0\.0\.1|\[::1\]):(0|[1-9][0-9]{0,4})$/.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535) return null
  return { host: host as ListenAddress['host'], port: Number(port) }
}

export class MetricsExporter {
  readonly #context: Context
  readonly #remote: Remote
  readonly #server: Server
  #hosts: ReadonlySet<string> = new Set()
  /** Code of the last failure, which is reported once; null after a success. */
  #failing: string | null = null

  private constructor(context: Context, remote: Remote) {
    this.#context = context
    this.#remote = remote
    this.#server = createServer(
      { headersTimeout: REQUEST_MS_MAX, requestTimeout: REQUEST_MS_MAX },
      (request, response) => void this.#answer(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /** Opens the address. Throws CLIENT_USAGE where that is impossible. */
  static async open(
    context: Context,
    remote: Remote,
    { host, port }: ListenAddress,
  ): Promise<MetricsExporter> {
    const exporter = new MetricsExporter(context, remote)
    const server = exporter.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => {
        reject(usage(`${host}:${port} cannot be opened: ${systemCode(error) ?? error.message}.`))
      })
      server.listen(port, host.replace(/[[\]]/g, ''), () => resolve())
    })
    const opened = (server.address() as AddressInfo).port
    exporter.#hosts = new Set([`${host}:${opened}`, `localhost:${opened}`])
    return exporter
  }

  get url(): string {
    return `http://${[...this.#hosts][0]}${PATH}`
  }

  /** Resolves once `signal` has fired and the address is closed. */
  async whenEnded(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) {
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const rejection = this.#rejectionOf(request)
    if (rejection !== null) {
      if (rejection === 405) response.setHeader('allow', 'GET')
      respond(response, rejection, '')
      return
    }
    try {
      respond(response, 200, await this.#read())
      if (this.#failing !== null) await this.#context.output.warn('The server answers again.')
      this.#failing = null
    } catch (error) {
      const code = isFault(error) ? error.code : 'CLIENT_FAILED'
      respond(response, 503, `${code}\n`)
      if (this.#failing === code) return
      this.#failing = code
      await this.#context.output.warn(`svc: ${code}: ${reasonOf(error)}`)
    }
  }

  /** Returns the HTTP status of a rejection; null for a request of the metrics. */
  #rejectionOf({ method, url, headers }: IncomingMessage): number | null {
    // A page whose name resolves to the loopback address has another Host (DNS rebinding).
    if (!this.#hosts.has(headers.host ?? '')) return 421
    if (url !== PATH) return 404
    return method === 'GET' ? null : 405
  }

  async #read(): Promise<string> {
    const { session } = this.#remote
    const lines: string[] = []
    let characters = 0
    const onLine = async (line: string): Promise<void> => {
      characters += line.length
      if (characters > TEXT_CHARACTERS_MAX) throw new Fault('CLIENT_RESPONSE_INVALID')
      lines.push(line)
    }
    await this.#remote.lines(readMetrics, onLine, { accept: TEXT_TYPE })
    const ends = Number(session.profile.refreshExpiresAtMicros / 1_000_000n)
    return [
      ...lines,
      `# TYPE ${SESSION_END} gauge`,
      `# HELP ${SESSION_END} End of the session of this exporter since the Unix epoch.`,
      `${SESSION_END} ${ends}`,
      '',
    ].join('\n')
  }
}

function reasonOf(error: unknown): string {
  if (!isFault(error)) return error instanceof Error ? error.message : 'Unknown failure.'
  return error.detail === undefined ? error.message : `${error.message} ${error.detail}`
}

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': `${TEXT_TYPE}; charset=utf-8`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(text)
}
