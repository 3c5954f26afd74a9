/** The spans of requests to both origins. */
import type { Span, SpanAttributes, Traces } from '../telemetry/traces/spans.ts'
import type { RequestId } from '../value/ids.ts'

interface TracedRequest {
  readonly method: string
  /** Path of the route, with the names of its parameters in place of values. */
  readonly path: string
  readonly headers: Headers
  readonly requestId: RequestId
  /** Monotonic milliseconds. */
  readonly started: number
  /** The credential of the caller. */
  readonly attributes?: SpanAttributes
}

/** Starts the span of a request whose caller is authenticated; null if nothing is traced. */
export function startTrace(
  traces: Traces | null | undefined,
  { method, path, headers, requestId, started, attributes }: TracedRequest,
): Span | null {
  if (!traces) return null
  return traces.request({
    name: `${method} ${path}`,
    kind: 'server',
    headers,
    startedMillis: started,
    attributes: {
      'http.request.method': method,
      'http.route': path,
      'svc.request.id': requestId,
      ...attributes,
    },
  })
}

/** Ends the span with the status of the response and the code of a failure. */
export function endTrace(trace: Span | null, status: number, errorCode?: string): void {
  if (trace === null) return
  const attributes = { 'http.response.status_code': status, 'svc.error.code': errorCode }
  trace.end(status < 500 ? { attributes } : { attributes, error: String(status) })
}
