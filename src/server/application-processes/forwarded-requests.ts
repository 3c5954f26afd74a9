/**
 * Requests that an application process passes to the origin of the main process: transfers of
 * files, the S3-compatible API and development. Bodies are streamed in both directions.
 */

import type { ApplicationBinding } from '../../http/application/incoming.ts'
import { isS3Url } from '../../http/application/s3/requests.ts'
import { FORWARDED } from '../peer-addresses.ts'

/** Paths of the requests that the main process answers. */
const FORWARDED_PATHS = ['/v1/files/', '/v1/workspaces/']

export function isForwarded(url: string, s3Host: string | null): boolean {
  if (isS3Url(url, s3Host)) return true
  const path = url.slice(url.indexOf('/', url.indexOf('://') + 3))
  return FORWARDED_PATHS.some((prefix) => path.startsWith(prefix))
}

/** Passes a request to the Unix socket `socketPath`. Rejects if the main process has ended. */
export async function forward(
  request: Request,
  binding: ApplicationBinding,
  socketPath: string,
): Promise<Response> {
  const headers = new Headers(request.headers)
  headers.set(FORWARDED, binding.peer ?? 'unknown')
  // The runtime would send a header of its own, and the client may not read what that accepts.
  if (!headers.has('accept-encoding')) headers.set('accept-encoding', 'identity')
  binding.takeTime()
  const answer = await fetch(request.url, {
    method: request.method,
    headers,
    body: request.body,
    signal: request.signal,
    redirect: 'manual',
    decompress: false,
    unix: socketPath,
  })
  return new Response(answer.body, {
    status: answer.status,
    statusText: answer.statusText,
    headers: answer.headers,
  })
}
