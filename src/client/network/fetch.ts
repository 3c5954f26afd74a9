/**
 * `fetch` over node:http. The runtimes' own one is not used: that of Bun obeys proxy variables that
 * would send tokens to a proxy, and a variable makes it print headers; that of Node has no proxy.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { assert } from '../../errors/assert.ts'
import { send } from '../../system/guarded-fetch.ts'
import { connect } from './connections.ts'
import { proxyFor } from './proxies.ts'

/**
 * Returns a `fetch` that never follows a redirect, never reuses a connection and only sends the
 * given headers. It throws the reason of the signal, ConnectFailure if nothing was sent,
 * CLIENT_USAGE for an invalid proxy variable, and the error of the connection.
 */
export function createFetch(variable: (name: string) => string | undefined) {
  return async (address: string, init: RequestInit): Promise<Response> => {
    const url = new URL(address)
    const signal = init.signal ?? new AbortController().signal
    const body = bodyOf(init.body)
    const connection = await connect(url, proxyFor(url, variable), signal)
    try {
      const response = await send(connection, {
        url,
        method: init.method ?? 'GET',
        headers: {
          host: url.host,
          connection: 'close',
          'accept-encoding': 'identity',
          ...(body instanceof Uint8Array && { 'content-length': String(body.length) }),
          ...Object.fromEntries(new Headers(init.headers)),
        },
        body,
        signal,
      })
      return toResponse(response)
    } catch (error) {
      connection.destroy()
      throw signal.aborted ? signal.reason : error
    }
  }
}

/** The length of a stream is in the headers of its request. */
function bodyOf(body: RequestInit['body']): Uint8Array | Readable | null {
  if (body === undefined || body === null) return null
  if (body instanceof Uint8Array) return body
  // The types of web streams are not compatible, as below.
  if (body instanceof ReadableStream) return Readable.fromWeb(body as unknown as NodeReadableStream)
  assert(
    typeof body === 'string' || body instanceof URLSearchParams,
    'a body is text, a form, bytes or a stream',
  )
  return Buffer.from(body.toString())
}

/** Statuses whose responses have no body (Fetch standard, 2.2.3). */
const WITHOUT_BODY: readonly number[] = [204, 205, 304]

function toResponse(message: IncomingMessage): Response {
  const headers = new Headers()
  for (const [i, name] of message.rawHeaders.entries()) {
    if (i % 2 === 0) headers.append(name, message.rawHeaders[i + 1] ?? '')
  }
  const status = message.statusCode ?? 0
  if (WITHOUT_BODY.includes(status)) {
    message.resume()
    return new Response(null, { status, headers })
  }
  // The types of Node's web streams and of the global ones are not compatible.
  const body = Readable.toWeb(message) as unknown as ReadableStream
  return new Response(body, { status, headers })
}
