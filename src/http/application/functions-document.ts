/** The handler of the OpenAPI document of the Functions that a key may call. */
import { Fault } from '../../errors/fault.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import { compressionFor } from '../content-codings.ts'
import { isNotModified } from '../ranges.ts'
import { answerBody } from '../transfers/answers.ts'
import { mayInvoke } from './call-admission.ts'
import { authenticate, chargeBody, resolveAffinity } from './callers.ts'
import type { Gateway } from './gateway.ts'
import type { ApplicationCaller, Incoming } from './incoming.ts'
import { DEFAULT_TARGET, requireShort } from './plain-calls.ts'
import { readParameter } from './url-queries.ts'

/** Weighted policies: the Release of a document does not change with each request. */
const AFFINITY_FALLBACK = 'openapi'

export async function sendFunctionsDocument(
  gateway: Gateway,
  incoming: Incoming,
): Promise<Response> {
  const caller = authenticate(gateway, incoming)
  if (caller.kind === 'development') {
    throw new Fault('AUTH_POLICY_DENIED', { detail: 'a development key calls no Function' })
  }
  const target = requireShort(readParameter(incoming.request.url, 'target') ?? DEFAULT_TARGET)
  incoming.target = target
  const affinity = () => resolveAffinity(gateway, incoming, caller, AFFINITY_FALLBACK)
  const { releaseId, functions } = await gateway.resolveTarget(target, caller, { affinity })
  incoming.releaseId = releaseId
  const rights = [caller.kind, ...caller.scopes].join(' ')
  let isMade = false
  const document = gateway.functionDocuments.get({ releaseId, target }, rights, () => {
    isMade = true
    return [...functions.values()].filter((each) => mayCallFunction(caller, each))
  })
  const etag = `"${document.digest}"`
  // Weak, since a compressed response has other bytes (RFC 9110, 8.8.1).
  const headers = { etag: `W/${etag}`, 'cache-control': 'private, no-cache' }
  const isKnown = isNotModified(incoming.request.headers.get('if-none-match'), etag)
  // Making a document, and sending one, costs as much as a body of its length.
  if (isMade || !isKnown) chargeBody(gateway, caller, document.text.length)
  if (isKnown) return new Response(null, { status: 304, headers })
  const compression = compressionFor(incoming.request, document.forms)
  const answer = await answerBody(['', document.text, ''], gateway.transfers, incoming, compression)
  if (answer === null) {
    throw new Fault('BUSY', { detail: 'the memory for unsent responses is exhausted' })
  }
  const type = 'application/json; charset=utf-8'
  return new Response(answer.body, {
    headers: { ...headers, ...answer.headers, 'content-type': type },
  })
}

function mayCallFunction(caller: ApplicationCaller, definition: FunctionManifest): boolean {
  const { visibility, clients, kind } = definition
  const isAllowed = caller.kind !== 'development' && clients.includes(caller.kind)
  return visibility === 'public' && isAllowed && mayInvoke(caller, kind)
}
