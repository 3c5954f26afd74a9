/** Responses of the probes for liveness and readiness. */
import type { RequestId } from '../value/ids.ts'
import type { Live, Ready } from '../wire/health.ts'

export function probeResponse(requestId: RequestId, status: (Live | Ready)['status']): Response {
  const headers = new Headers({
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-service-request-id': requestId,
  })
  if (status !== 'unavailable') return Response.json({ status }, { headers })
  headers.set('retry-after', '1')
  return Response.json({ status }, { status: 503, headers })
}
