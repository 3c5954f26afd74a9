/** `fetch` of Actions: the server makes the request and answers the whole response. */
import type { Calls, makeOperations } from '../calls.ts'
import type { makeBody, makeRequest, makeResponse } from './exchanges.ts'

/** What the server answers. */
export interface FetchReply {
  readonly status: number
  readonly statusText: string
  readonly url: string
  readonly redirected: boolean
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

export function makeFetch(
  calls: Calls,
  operations: ReturnType<typeof makeOperations>,
  parts: {
    readonly Body: ReturnType<typeof makeBody>
    readonly Request: ReturnType<typeof makeRequest>
    readonly Response: ReturnType<typeof makeResponse>
    readonly received: symbol
    readonly bounds: { readonly requestBytes: number; readonly requestHeadCharacters: number }
  },
) {
  const { Body, Request, Response, received } = parts
  const { requestBytes, requestHeadCharacters } = parts.bounds
  const { stringify } = JSON
  let last = 0

  function operationText(request: InstanceType<typeof Request>): string {
    const { url, method, redirect } = request
    const bytes = Body.bytesOf(request)
    if (bytes !== null && bytes.length > requestBytes) {
      throw new RangeError(`fetch: the body has ${bytes.length} bytes, at most ${requestBytes}`)
    }
    const head = stringify({ url, method, headers: [...request.headers], redirect })
    if (head.length > requestHeadCharacters) {
      const most = `at most ${requestHeadCharacters}`
      throw new RangeError(`fetch: URL and headers have ${head.length} characters, ${most}`)
    }
    // Apart from the rest, which would be another copy: it has nothing to be escaped.
    const body = bytes === null ? 'null' : `"${bytes.toBase64()}"`
    return `${head.slice(0, -1)},"body":${body}}`
  }

  function responseOf({ status, statusText, url, redirected, headers, body }: FetchReply) {
    const bytes = body.length === 0 ? null : body
    const response = new Response(bytes, { status, statusText, headers }, received)
    return Object.assign(response, { url, redirected })
  }

  return async (input: unknown, init?: ConstructorParameters<typeof Request>[1]) => {
    const call = calls.running()
    if (call === null) throw new TypeError('fetch: call it in a handler')
    const request = new Request(input, init)
    const { signal } = request
    signal?.throwIfAborted()
    const handle = ++last
    const reply = operations.leave(call, `["fetch",${handle},${operationText(request)}]`)
    if (signal === null) return responseOf((await reply) as FetchReply)
    const { promise, reject } = Promise.withResolvers<never>()
    const onAbort = () => {
      if (!call.finished) void operations.leave(call, `["abort",${handle}]`)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort)
    try {
      return responseOf((await Promise.race([reply, promise])) as FetchReply)
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
