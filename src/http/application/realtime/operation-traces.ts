/**
 * The spans of a Realtime connection: one for each operation of its client. The connection itself
 * has none, since it lasts for hours, and a state belongs to the run of the Query that made it.
 */
import { failureEnd } from '../../../telemetry/traces/failures.ts'
import type { Span } from '../../../telemetry/traces/spans.ts'
import { APPLICATION_CODES, toFault } from '../../errors.ts'
import type { Gateway } from '../gateway.ts'
import { REALTIME } from '../routes.ts'
import type { OpenedBy } from './authorizations.ts'

interface TracedConnection {
  readonly gateway: Gateway
  readonly incoming: OpenedBy
}

/** Returns the headers of a request that continue a trace; null if nothing is traced. */
export function traceHeadersOf({ traces }: Gateway, { headers }: Request): Headers | null {
  if (!traces) return null
  const names = ['traceparent', 'tracestate'].filter((name) => headers.has(name))
  return new Headers(names.map((name) => [name, headers.get(name)!]))
}

/**
 * Starts the span of an operation of a connection whose key was verified, in the trace of the
 * request that opened the connection. Returns null if nothing is traced.
 */
export function startOperation(
  { gateway: { traces, system }, incoming }: TracedConnection,
  name: 'authenticate' | 'subscribe',
  startedMillis = system.monotonicMillis(),
): Span | null {
  const { requestId, caller, traceHeaders: headers } = incoming
  if (!traces || headers === null || caller === null) return null
  return traces.request({
    name: `realtime ${name}`,
    kind: 'server',
    headers,
    startedMillis,
    attributes: {
      'http.route': REALTIME.path,
      'svc.request.id': requestId,
      'svc.client.id': caller.clientId,
      'svc.credential.id': caller.credentialId,
    },
  })
}

/** Runs an authentication, with a span once its key is verified. Rejects with errors of `run`. */
export async function tracedAuthentication(
  connection: TracedConnection,
  run: () => Promise<void>,
): Promise<void> {
  const startedMillis = connection.gateway.system.monotonicMillis()
  try {
    await run()
    startOperation(connection, 'authenticate', startedMillis)?.end()
  } catch (error) {
    const span = startOperation(connection, 'authenticate', startedMillis)
    span?.end(failureEnd(toFault(error, APPLICATION_CODES)))
    throw error
  }
}
