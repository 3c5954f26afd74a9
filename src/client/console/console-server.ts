/**
 * The loopback server of the console. It serves the page and its calls to the one browser that used
 * the start URL, and rejects everything else before it looks at a body.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import process from 'node:process'
import { Fault, isFault } from '../../errors/fault.ts'
import { decodeBase64Url } from '../../value/base64url.ts'
import type { Json } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { DOCUMENT_BODY_BYTES_MAX } from '../../wire/data.ts'
import { describe } from '../output.ts'
import { LAST_LINE } from '../requests/requests.ts'
import { Downloads } from './downloads.ts'
import type { PageAccess } from './page-access.ts'
import type { PageCalls } from './page-calls.ts'
import {
  beginFile,
  beginLines,
  redirect,
  reject,
  respond,
  respondJson,
  respondNotice,
} from './page-responses.ts'
import { type DownloadedFile, streamOf } from './page-transfers.ts'
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
/** @limit The console: downloads and uploads of the page at a time */
export const TRANSFERS_MAX = 4
const CONNECTIONS_MAX = 64
const REQUEST_MS_MAX = 60_000
/** Time for 64 MiB at 256 KiB/s, rounded up. */
const UPLOAD_MS_MAX = 300_000
const DISCARDED_BYTES_MAX = 128 * 1024 * 1024
/** @limit The console: time for which the browser reads nothing of a download */
export const STALL_MS_MAX = 5 * 60_000
const START = '/start/'

/** Paths below the base. */
const ABOUT = 'about'
const FOLLOW = 'follow'
const CALL = 'call/'
/** Begins a download, and answers with its path. */
const PREPARE = 'prepare/'
const DOWNLOAD = 'download/'
const UPLOAD = 'upload/'

type Kind = 'call' | 'stream' | 'transfer'
const IN_FLIGHT_MAX: Readonly<Record<Kind, number>> = {
  call: CALLS_MAX,
  stream: STREAMS_MAX,
  transfer: TRANSFERS_MAX,
}

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

/** The header of an upload with its call, as base64url of JSON. */
export const CALL_HEADER = 'x-console-call'

/** The header of requests that no person asked for, such as those of a timer. */
const BACKGROUND_HEADER = 'x-console-background'

export class ConsoleServer {
  readonly #parts: ConsoleParts
  readonly #server: Server
  #authority = ''
  #port = 0
  readonly #inFlight: Record<Kind, number> = { call: 0, stream: 0, transfer: 0 }
  readonly #downloads: Downloads

  private constructor(parts: ConsoleParts) {
    this.#parts = parts
    this.#downloads = new Downloads(() => parts.access.newName())
    this.#server = createServer(
      { headersTimeout: REQUEST_MS_MAX, requestTimeout: UPLOAD_MS_MAX, maxHeaderSize: 32 * 1024 },
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
    this.#downloads.clear()
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
    if (use === 'call' || use === 'upload') return this.#answer(name, request, response)
    if (use === 'download') {
      const isKnown = this.#downloads.take(name.slice(DOWNLOAD.length), response)
      return isKnown ? undefined : reject(response, 404)
    }
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
        this.#downloads.clear()
        respondNotice(response, 410, 'used')
        onRepeatedStart()
        break
    }
  }

  async #answer(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const kind = kindOf(name)
    if (this.#inFlight[kind] >= IN_FLIGHT_MAX[kind]) return reject(response, 503)
    this.#inFlight[kind]++
    try {
      if (name.startsWith(UPLOAD)) return await this.#upload(name, request, response)
      const body = await readBody(request)
      if (body === null) return reject(response, 413)
      if (name === FOLLOW) await this.#follow(body, response)
      else if (name.startsWith(PREPARE)) await this.#download(name, body, response)
      else respondJson(response, 200, { result: await this.#resultOf(name, body) })
    } catch (error) {
      respondFailure(response, error)
    } finally {
      this.#inFlight[kind]--
    }
  }

  #resultOf(name: string, body: Uint8Array): Json | Promise<Json> {
    const { about, calls } = this.#parts
    return name === ABOUT ? about() : calls.call(name.slice(CALL.length), body)
  }

  /**
   * Begins a download and tells the page its name, then writes it to the browser that asks for the
   * name. A failure before the first byte is an answer to the page; a later one cuts the file off,
   * which the browser notices.
   */
  async #download(name: string, body: Uint8Array, response: ServerResponse): Promise<void> {
    const offer = this.#downloads.offer()
    let file: DownloadedFile = { name: '', length: null }
    let target = null as ServerResponse | null
    const opened = async (): Promise<ServerResponse> => {
      if (target !== null) return target
      target = await offer.taken
      if (target === null || target.destroyed) throw new Fault('CLIENT_INTERRUPTED')
      beginFile(target, file.name, file.length)
      return target
    }
    try {
      await this.#parts.calls.download(name.slice(PREPARE.length), body, {
        begin(known) {
          file = known
          const result = { path: `${DOWNLOAD}${offer.name}`, length: known.length }
          respondJson(response, 200, { result })
        },
        async write(bytes) {
          const to = await opened()
          if (!to.write(bytes)) await drained(to, STALL_MS_MAX)
          if (to.destroyed) throw new Fault('CLIENT_INTERRUPTED')
        },
      })
      const to = await opened()
      to.end()
    } catch (error) {
      if (!response.headersSent) throw error
      target?.destroy()
    } finally {
      offer.close()
    }
  }

  /** Passes a file on as fast as the server reads it. */
  async #upload(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = callOf(request.headers[CALL_HEADER])
    const length = Number(request.headers['content-length'] ?? Number.NaN)
    if (call === null || !Number.isSafeInteger(length)) return reject(response, 400)
    const chunks: AsyncIterator<Uint8Array> = request[Symbol.asyncIterator]()
    const stream = streamOf(chunks, length)
    const timer = setTimeout(() => request.destroy(), UPLOAD_MS_MAX)
    try {
      const { calls } = this.#parts
      const result = await calls.upload(name.slice(UPLOAD.length), call, { stream, length })
      respondJson(response, 200, { result })
    } catch (error) {
      // Browsers read no response before they have sent the body.
      await discard(chunks)
      throw error
    } finally {
      clearTimeout(timer)
    }
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
  if (name.startsWith(UPLOAD)) return 'upload'
  if (name.startsWith(DOWNLOAD)) return 'download'
  const isCall = name === ABOUT || name === FOLLOW || /^(?:call|prepare)\//.test(name)
  return isCall ? 'call' : 'asset'
}

function kindOf(name: string): Kind {
  if (name === FOLLOW) return 'stream'
  return name.startsWith(UPLOAD) || name.startsWith(PREPARE) ? 'transfer' : 'call'
}

function assetOf(assets: ConsoleParts['assets'], name: string): Asset | null {
  return Object.hasOwn(assets, name) ? assets[name]! : null
}

/** Reads a body; returns null if it has more than CALL_BYTES_MAX. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  const timer = setTimeout(() => request.destroy(), REQUEST_MS_MAX)
  try {
    for await (const chunk of request) {
      length += chunk.length
      if (length > CALL_BYTES_MAX) return null
      chunks.push(chunk)
    }
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks)
}

/** Returns the call of an upload; null without one. */
function callOf(header: string | string[] | undefined): Uint8Array | null {
  if (typeof header !== 'string') return null
  try {
    return decodeBase64Url(header)
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

/** Reads the rest of a body that is not used, up to DISCARDED_BYTES_MAX. */
async function discard(chunks: AsyncIterator<Uint8Array>): Promise<void> {
  for (let length = 0; length <= DISCARDED_BYTES_MAX; ) {
    const next = await chunks.next()
    if (next.done === true) return
    length += next.value.length
  }
}

/** Waits until the response takes more, or is closed. After `ms` it is closed. */
function drained(response: ServerResponse, ms?: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      response.off('drain', end)
      response.off('close', end)
      resolve()
    }
    const timer = ms === undefined ? undefined : setTimeout(() => response.destroy(), ms)
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
