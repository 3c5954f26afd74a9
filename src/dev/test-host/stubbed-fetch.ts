/** Sends requests of Actions to the process of the test. */

import { OperationError } from '../../engine/calls/operation-error.ts'
import { RESPONSE_BYTES_MAX } from '../../engine/limits.ts'
import { FetchFailure } from '../../system/guarded-fetch.ts'
import type { OutboundRequest, OutboundResponse } from '../../system/outbound-fetch.ts'
import type { StubbedRequest, StubbedResponse } from '../../wire/test-kit.ts'

/** Sends a request to the test and returns its response. */
export type AskTest = (request: StubbedRequest) => Promise<StubbedResponse>

/**
 * Sends a request to the test. The hosts that the Action declares are checked as for a real one; a
 * redirect is returned to the Action. Throws FetchFailure and OperationError.
 */
export async function stubbedFetch(
  ask: AskTest,
  { url: text, method, headers, body, hosts, signal, hold }: OutboundRequest,
): Promise<OutboundResponse> {
  if (!URL.canParse(text)) throw new FetchFailure('url')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new FetchFailure('url')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  if (!hosts.includes(url.host) && !hosts.includes(`${url.hostname}:${port}`)) {
    throw new FetchFailure('origin')
  }
  const sent = body === null ? null : Buffer.from(body).toString('base64')
  const response = await unlessAborted(signal, ask({ url: url.href, method, headers, body: sent }))
  if ('failure' in response) throw new OperationError('TypeError', `fetch: ${response.failure}`)
  const received = Buffer.from(response.body, 'base64')
  if (received.length > RESPONSE_BYTES_MAX) throw new FetchFailure('size')
  hold(received.length)
  const { status, statusText } = response
  const head = { status, statusText, url: url.href, redirected: false, headers: response.headers }
  return { ...head, body: received }
}

async function unlessAborted<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(new FetchFailure('time'))
  signal.addEventListener('abort', onAbort)
  try {
    if (signal.aborted) onAbort()
    return await Promise.race([promise, answer])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
