/** The spans of requests to the application origin. */
import type { Gateway } from './gateway.ts'
import type { Incoming } from './incoming.ts'

/** Starts the span of a request whose caller is authenticated. `started` is monotonic. */
export function startTrace(
  { traces }: Gateway,
  incoming: Incoming,
  { path, method }: { readonly path: string; readonly method: string },
  started: number,
): void {
  const { request, requestId, caller } = incoming
  if (!traces) return
  incoming.trace = traces.request({
    ...{ name: `${method} ${path}`, kind: 'server', headers: request.headers },
    startedMillis: started,
    attributes: {
      'http.request.method': method,
      'http.route': path,
      'svc.request.id': requestId,
      'svc.client.id': caller?.clientId,
      'svc.credential.id': caller?.credentialId,
    },
  })
}

/** Ends the span with the status of the response. */
export function endTrace({ trace }: Incoming, status: number): void {
  if (trace === null) return
  const attributes = { 'http.response.status_code': status }
  trace.end(status < 500 ? { attributes } : { attributes, error: String(status) })
}
