/**
 * Requests that an application process passes to the origin of the main process: transfers of
 * files, the S3-compatible API, requests of other services, and development. The main process
 * decides, and names the bytes of a download; this process sends them, since it has the connection.
 */

import type { Fault } from '../../errors/fault.ts'
import { isFault } from '../../errors/fault.ts'
import type { ApplicationBinding } from '../../http/application/incoming.ts'
import { isS3Url } from '../../http/application/s3/requests.ts'
import { peerOf } from '../../http/rate-limits.ts'
import type { Downloads } from '../../http/transfers/downloads.ts'
import {
  NAMED_BYTES,
  type NamedBytes,
  namedBytesOf,
  TAKES_NAMED_BYTES,
} from '../../http/transfers/named-bytes.ts'
import { sizedResponse } from '../../http/transfers/sized-streams.ts'
import type { BlobBody, BlobStore } from '../../storage/blobs/blobs.ts'
import { FORWARDED } from '../peer-addresses.ts'

/** Size up to which a response is read before it is passed on. */
const SHORT_BYTES = 64 * 1024
/** Paths of the requests that the main process answers. */
const FORWARDED_PATHS = ['/v1/files/', '/v1/http/', '/v1/workspaces/']

export interface ForwardingOptions {
  /** The Unix socket on which the main process answers. */
  readonly originPath: string
  readonly s3Host: string | null
  readonly blobs: Pick<BlobStore, 'open'>
  readonly downloads: Downloads
  /** Returns the response to a download beyond the bounds. */
  readonly reject: (binding: ApplicationBinding, fault: Fault) => Response
}

export class ForwardedRequests {
  readonly #options: ForwardingOptions

  constructor(options: ForwardingOptions) {
    this.#options = options
  }

  /** Returns whether the main process answers requests for this URL. */
  includes(url: string): boolean {
    if (isS3Url(url, this.#options.s3Host)) return true
    const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
    return FORWARDED_PATHS.some((prefix) => path.startsWith(prefix))
  }

  /** Rejects if the main process has ended. */
  async answer(request: Request, binding: ApplicationBinding): Promise<Response> {
    // The body of an upload and the work of the main process have times of their own.
    binding.takeTime()
    try {
      const answer = await this.#ask(request, binding, request.method === 'GET')
      const named = namedBytesOf(answer.headers)
      return named === null
        ? await passed(answer)
        : await this.#send(request, binding, answer, named)
    } finally {
      binding.returnTime()
    }
  }

  async #send(
    request: Request,
    binding: ApplicationBinding,
    { status, headers: given }: Response,
    { content, slice }: NamedBytes,
  ): Promise<Response> {
    const { blobs, downloads, s3Host, reject } = this.#options
    const headers = ownHeaders(given)
    const length = slice.end - slice.start
    const open = () => blobs.open(content, slice)
    let body: BlobBody
    try {
      // As in one process, the S3-compatible API is bounded by its keys alone.
      const isBounded = !isS3Url(request.url, s3Host)
      const sent = { peer: peerOf(binding), bytes: length }
      body = isBounded ? await downloads.send(sent, binding, open) : await open()
    } catch (error) {
      if (isFault(error, 'BUSY')) return withOrigin(reject(binding, error), headers)
      // The main process fails too, in the form of the route, and logs why.
      return await passed(await this.#ask(request, binding, false))
    }
    return sizedResponse(body, { length, status, headers })
  }

  #ask(
    { url, method, headers: given, body, signal }: Request,
    { peer }: ApplicationBinding,
    takesNamedBytes: boolean,
  ): Promise<Response> {
    const headers = new Headers(given)
    headers.set(FORWARDED, peer ?? 'unknown')
    // The runtime would send a header of its own, and the client may not read what that accepts.
    if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity')
    if (takesNamedBytes) headers.set(TAKES_NAMED_BYTES, '1')
    else headers.delete(TAKES_NAMED_BYTES)
    return fetch(url, {
      method,
      headers,
      body,
      signal,
      redirect: 'manual',
      decompress: false,
      unix: this.#options.originPath,
    })
  }
}

/** Returns the response of the main process, with its length where it has one. */
async function passed(answer: Response): Promise<Response> {
  const { body, status } = answer
  const headers = ownHeaders(answer.headers)
  const length = headers.get('content-length')
  if (body === null || length === null) return new Response(body, { status, headers })
  // A long one ends its connection.
  const isShort = Number(length) <= SHORT_BYTES
  return isShort
    ? new Response(await answer.bytes(), { status, headers })
    : sizedResponse(body, { length: Number(length), status, headers })
}

/** Returns the headers without those of the connection between the processes. */
function ownHeaders(given: Headers): Headers {
  const headers = new Headers(given)
  for (const name of ['date', 'connection', NAMED_BYTES]) headers.delete(name)
  return headers
}

/** Lets the pages that may read the download read its rejection too. */
function withOrigin(response: Response, headers: Headers): Response {
  for (const [name, value] of headers) {
    if (name.startsWith('access-control-') || name === 'vary') response.headers.set(name, value)
  }
  return response
}
