/** `fetch` of Actions: the server sends the request and replies with the whole response. */
import { REQUEST_BYTES_MAX, REQUEST_HEAD_CHARACTERS_MAX } from '../../protocol/messages.ts'
import { runningCall } from '../calls.ts'
import { sendDetached } from '../operations.ts'
import { bytesOf, Request, type RequestInit, Response, received } from './bodies.ts'

/** The server's reply, decoded. */
interface FetchReply {
  readonly status: number
  readonly statusText: string
  readonly url: string
  readonly redirected: boolean
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

const { stringify } = JSON
let lastRequest = 0

function requestText(request: Request): string {
  const { url, method, redirect } = request
  const bytes = bytesOf(request)
  if (bytes !== null && bytes.length > REQUEST_BYTES_MAX) {
    throw new RangeError(`fetch: the body has ${bytes.length} bytes, at most ${REQUEST_BYTES_MAX}`)
  }
  const head = stringify({ url, method, headers: [...request.headers], redirect })
  if (head.length > REQUEST_HEAD_CHARACTERS_MAX) {
    const most = `at most ${REQUEST_HEAD_CHARACTERS_MAX}`
    throw new RangeError(`fetch: URL and headers have ${head.length} characters, ${most}`)
  }
  // Added as text: base64 needs no escapes, and stringify would make another copy.
  const body = bytes === null ? 'null' : `"${bytes.toBase64()}"`
  return `${head.slice(0, -1)},"body":${body}}`
}

function responseOf({ status, statusText, url, redirected, headers, body }: FetchReply): Response {
  const bytes = body.length === 0 ? null : body
  const response = new Response(bytes, { status, statusText, headers }, received)
  return Object.assign(response, { url, redirected })
}

export async function fetch(input: unknown, init?: RequestInit | null): Promise<Response> {
  const call = runningCall()
  if (call === null) throw new TypeError('fetch: call it in a handler')
  const request = new Request(input, init)
  const { signal } = request
  signal?.throwIfAborted()
  const id = ++lastRequest
  const reply = sendDetached(call, `["fetch",${id},${requestText(request)}]`)
  if (signal === null) return responseOf((await reply) as FetchReply)
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => {
    if (!call.finished) void sendDetached(call, `["abort",${id}]`)
    reject(signal.reason)
  }
  signal.addEventListener('abort', onAbort)
  try {
    return responseOf((await Promise.race([reply, promise])) as FetchReply)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
