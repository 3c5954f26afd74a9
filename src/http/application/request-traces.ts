/** The spans of requests to the application origin. */
import type { Gateway } from './gateway.ts'
import type { Incoming } from './incoming.ts'

/** The credential of a caller: an Application Key or a storage key. */
interface Credential {
  readonly clientId?: string
  readonly credentialId?: string
  readonly storageKeyId?: string
}

interface TracedRoute {
  readonly path: string
  readonly method: string
  /** Monotonic milliseconds. */
  readonly started: number
}

/** Starts the span of a request whose caller is authenticated. */
export function startTrace(
  { traces }: Gateway,
  incoming: Incoming,
  { path, method, started }: TracedRoute,
  caller: Credential | null = incoming.caller,
): void {
  const { request, requestId } = incoming
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
      'svc.storage_key.id': caller?.storageKeyId,
    },
  })
}

/** Ends the span with the status of the response. */
export function endTrace({ trace }: Incoming, status: number): void {
  if (trace === null) return
  const attributes = { 'http.response.status_code': status }
  trace.end(status < 500 ? { attributes } : { attributes, error: String(status) })
}
