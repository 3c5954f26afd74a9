/**
 * The first and the last steps of every exchange: a call, a file transfer, a synchronization or an
 * S3 request. They are the span, the browser origin and the counts.
 */
import type { SpanAttributes } from '../../telemetry/traces/spans.ts'
import { countedStatus, type RouteClass } from '../request-counts.ts'
import { endTrace, startTrace } from '../request-traces.ts'
import { allowOrigin } from './browser-origins.ts'
import type { Gateway } from './gateway.ts'
import type { Incoming } from './incoming.ts'

interface TracedRoute {
  readonly path: string
  readonly method: string
  /** Monotonic milliseconds. */
  readonly started: number
}

/** Starts the span of a request whose caller is authenticated. `credential` names a storage key. */
export function startSpan(
  { traces }: Gateway,
  incoming: Incoming,
  { path, method, started }: TracedRoute,
  credential?: SpanAttributes,
): void {
  const { request, requestId, caller } = incoming
  incoming.trace = startTrace(traces, {
    path,
    method,
    headers: request.headers,
    requestId,
    started,
    attributes: credential ?? {
      'svc.client.id': caller?.clientId,
      'svc.credential.id': caller?.credentialId,
    },
  })
}

interface Exchanged {
  readonly response: Response
  /** The header Origin, which an exchange reads once. */
  readonly origin: string | null
  /** Monotonic milliseconds. */
  readonly started: number
  /** Undefined where the duration is not measured. */
  readonly routeClass: RouteClass | undefined
}

/** Ends the exchange and returns its response, which the pages of allowed origins may read. */
export function endExchange(
  gateway: Gateway,
  { request, trace, caller }: Incoming,
  { response, origin, started, routeClass }: Exchanged,
): Response {
  allowOrigin(gateway.allowedOrigins, response, origin)
  const status = countedStatus(request, response.status)
  endTrace(trace, status)
  gateway.counts.answered(status, routeClass, gateway.system.monotonicMillis() - started)
  if (caller !== null) gateway.keyUsage.answered(caller, status)
  return response
}
