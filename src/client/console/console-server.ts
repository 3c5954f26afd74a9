/**
 * The loopback server of the console. It serves the page and its calls to the one browser that used
 * the start URL, and rejects everything else before it looks at a body.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import process from 'node:process'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Json } from '../../value/strict-json.ts'
import { DOCUMENT_BODY_BYTES_MAX } from '../../wire/data.ts'
import { describe } from '../output.ts'
import { LAST_LINE } from '../requests/requests.ts'
import type { PageAccess } from './page-access.ts'
import type { PageCalls } from './page-calls.ts'
import {
  beginLines,
  redirect,
  reject,
  respond,
  respondJson,
  respondNotice,
} from './page-responses.ts'
import { isOwnPeer, ownerOfPeer } from './peer-owners.ts'
import { rejectionOf, type Use } from './request-checks.ts'

/** The literal address: `localhost` may resolve to another one, and 0.0.0.0 is public. */
const HOST = '127.0.0.1'
/** @limit The console: bytes of a call of the page */
export const CALL_BYTES_MAX = DOCUMENT_BODY_BYTES_MAX + 16 * 1024
/** @limit The console: calls of the page in flight */
export const CALLS_MAX = 32
/** @limit The console: streams of the log at a time */
export const STREAMS_MAX = 8
const CONNECTIONS_MAX = 64
const REQUEST_MS_MAX = 60_000
const START = '/start/'

/** A file of the page. */
export interface Asset {
  readonly type: string
  readonly text: string
}

export interface ConsoleParts {
  readonly access: PageAccess
  readonly calls: PageCalls
  /** The files of the page by name; the document is `index.html`. */
  readonly assets: Readonly<Record<string, Asset>>
  /** Returns what the page knows from its start: Environments and the operator. */
  readonly about: () => Json
  /** Called for each use of the page by a person. */
  readonly onUse: () => void
  /** Called when a start URL was used a second time, after the page was closed. */
  readonly onRepeatedStart: () => void
}

/** The header of requests that no person asked for, such as those of a timer. */
const BACKGROUND_HEADER = 'x-console-background'

export class ConsoleServer {
  readonly #parts: ConsoleParts
  readonly #server: Server
  #authority = ''
  #port = 0
  #callsInFlight = 0
  #streams = 0

  private constructor(parts: ConsoleParts) {
    this.#parts = parts
    this.#server = createServer(
      { headersTimeout: REQUEST_MS_MAX, requestTimeout: REQUEST_MS_MAX, maxHeaderSize: 32 * 1024 },
      (request, response) => void this.#receive(request, response),
    )
    this.#server.maxConnections = CONNECTIONS_MAX
    this.#server.on('connection', (socket: Socket) => this.#admit(socket))
  }

  /** Opens a port of the loopback address. Throws CLIENT_FAILED if there is none. */
  static async open(parts: ConsoleParts): Promise<ConsoleServer> {
    const opened = new ConsoleServer(parts)
    const server = opened.#server
    await new Promise<void>((resolve, reject) => {
      const failed = new Fault('CLIENT_FAILED', { detail: `No port of ${HOST} could be opened.` })
      server.once('error', () => reject(failed))
      server.listen(0, HOST, () => resolve())
    })
    opened.#port = (server.address() as AddressInfo).port
    opened.#authority = `${HOST}:${opened.#port}`
    return opened
  }

  get origin(): string {
    return `http://${this.#authority}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** Ends connections of other users of this machine, where the system tells the user. */
  #admit(socket: Socket): void {
    const owner = ownerOfPeer(socket.remotePort ?? 0, this.#port)
    if (!isOwnPeer(owner, process.getuid?.())) socket.destroy()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    const { access } = this.#parts
    if (path.startsWith(START)) return this.#start(request, response)
    const base = access.basePath
    const name = path.startsWith(base) ? path.slice(base.length) : null
    const use = useOf(name)
    const rejection = rejectionOf(request, use, this.#authority)
    if (rejection !== null) return reject(response, 403)
    if (name === null || !access.isOpenTo(request)) {
      return use === 'document' ? respondNotice(response, 403, 'closed') : reject(response, 403)
    }
    if (request.headers[BACKGROUND_HEADER] === undefined) this.#parts.onUse()
    if (use === 'call') return this.#answer(name, request, response)
    const asset = assetOf(this.#parts.assets, name === '' ? 'index.html' : name)
    if (asset === null) return reject(response, 404)
    respond(response, 200, { type: asset.type, body: asset.text })
  }

  #start(request: IncomingMessage, response: ServerResponse): void {
    if (rejectionOf(request, 'document', this.#authority) !== null) {
      reject(response, 403)
      return
    }
    const { access, onRepeatedStart, onUse } = this.#parts
    switch (access.useStart((request.url ?? '').slice(START.length))) {
      case 'opened':
        onUse()
        redirect(response, access.basePath, access.setCookie)
        break
      case 'wrong':
        respondNotice(response, 403, 'closed')
        break
      case 'repeated':
        respondNotice(response, 410, 'used')
        onRepeatedStart()
        break
    }
  }

  async #answer(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isStream = name === 'follow'
    const isFull = isStream ? this.#streams >= STREAMS_MAX : this.#callsInFlight >= CALLS_MAX
    if (isFull) return reject(response, 503)
    if (isStream) this.#streams++
    else this.#callsInFlight++
    try {
      const body = await readBody(request)
      if (body === null) return reject(response, 413)
      if (isStream) await this.#follow(body, response)
      else respondJson(response, 200, { result: await this.#resultOf(name, body) })
    } catch (error) {
      respondFailure(response, error)
    } finally {
      if (isStream) this.#streams--
      else this.#callsInFlight--
    }
  }

  #resultOf(name: string, body: Uint8Array): Json | Promise<Json> {
    const { about, calls } = this.#parts
    return name === 'about' ? about() : calls.call(name.slice('call/'.length), body)
  }

  /** Passes lines on as fast as the page reads them. */
  async #follow(body: Uint8Array, response: ServerResponse): Promise<void> {
    await this.#parts.calls.follow(body, async (line) => {
      if (response.destroyed) return LAST_LINE
      if (!response.headersSent) beginLines(response)
      if (!response.write(`${line}\n`)) await drained(response)
      return response.destroyed ? LAST_LINE : undefined
    })
    response.end()
  }
}

/** The use of a path below the base; a path outside of it may only be a document. */
function useOf(name: string | null): Use {
  if (name === null || name === '') return 'document'
  return name === 'about' || name === 'follow' || name.startsWith('call/') ? 'call' : 'asset'
}

function assetOf(assets: ConsoleParts['assets'], name: string): Asset | null {
  return Object.hasOwn(assets, name) ? assets[name]! : null
}

/** Reads a body; returns null if it has more than CALL_BYTES_MAX. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > CALL_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      response.off('drain', end)
      response.off('close', end)
      resolve()
    }
    response.once('drain', end)
    response.once('close', end)
  })
}

/** Tells the page what failed, as the command line would print it. */
function respondFailure(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  const fault = isFault(error) ? error : new Fault('CLIENT_FAILED', { cause: error })
  const { text, detail, next, requestId } = describe(fault)
  const { code, status, violations } = fault
  const failure = {
    code,
    message: detail === undefined ? text : `${text} ${detail}`,
    next,
    requestId,
    violations: violations.map(({ path, rule }) => ({ path, rule })),
  }
  if (response.headersSent) response.end(`${JSON.stringify({ error: failure })}\n`)
  else respondJson(response, status, { error: failure })
}
