/**
 * Requests of other services (contract/wire.md, HTTP mounts): verifies the signature over the bytes
 * as received, and stores the delivery. The service is answered once the delivery is durable; the
 * handler runs as scheduled work.
 */
import type { Release } from '../../../engine/releases/executable-release.ts'
import type { EndedWork } from '../../../engine/scheduled-work/scheduled-documents.ts'
import { Fault } from '../../../errors/fault.ts'
import type { HookPorts } from '../../../product/http-mounts/hook-ports.ts'
import type { StoredMount } from '../../../product/http-mounts/mount-directory.ts'
import { SIGNATURE_REJECTIONS } from '../../../product/http-mounts/signatures/signed-requests.ts'
import { verifySignature } from '../../../product/http-mounts/signatures/verification.ts'
import { withJson } from '../../../value/http/delivery-json.ts'
import type { HookManifest } from '../../../value/http/routes.ts'
import type { HookAccepted } from '../../../wire/http/deliveries.ts'
import { isCompressed, readBody } from '../../bodies.ts'
import { APPLICATION_CODES } from '../../errors.ts'
import { peerOf, requireNoWait } from '../../rate-limits.ts'
import { startSpan } from '../exchanges.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'
import type { MountUrl } from '../mounts/mount-urls.ts'
import { chargeMountBody, type Mounted, takeRate } from '../mounts/mounted-routes.ts'
import { renderResult } from '../mounts/results.ts'
import {
  deliveryArguments,
  deliveryFields,
  digestEvent,
  type HookDelivery,
} from './hook-requests.ts'

/**
 * Stores a request that has reached a hook, and answers it. Throws SIGNATURE_INVALID, RATE_LIMITED,
 * LIMIT_EXCEEDED, MEDIA_TYPE_UNSUPPORTED, UNAVAILABLE, and what `once` throws.
 */
export async function receiveDelivery(
  gateway: Gateway,
  incoming: Incoming,
  { mount, release, url, path, started }: Mounted,
  hook: HookManifest,
): Promise<Response> {
  const { request } = incoming
  if (gateway.limits !== null) {
    const detail = 'failed verifications of this address'
    requireNoWait(gateway.limits.failures.wait(peerOf(incoming.binding)), 'RATE_LIMITED', detail)
  }
  if (isCompressed(request.headers)) {
    throw new Fault('MEDIA_TYPE_UNSUPPORTED', { detail: 'content-encoding: identity' })
  }
  // Without a verification every body would be read.
  if (hook.verify === null) takeRate(gateway, mount)
  const body = await readBody(
    request,
    hook.maximumBytes,
    APPLICATION_CODES,
    gateway.transfers,
    incoming,
  )
  if (hook.verify !== null) {
    await verify(gateway, incoming, { mount, hook, url, body })
    takeRate(gateway, mount)
  }
  chargeMountBody(gateway, mount, body.length)
  if (gateway.traces) {
    const route = { path: '/v1/http/:mount', method: request.method, started }
    startSpan(gateway, incoming, route, { 'svc.http.mount': mount.name })
  }
  const { method, headers } = request
  const delivery = { hook, method, path, search: url.search, headers, body }
  return store(gateway, incoming, { hooks: gateway.hooks!, mount, release, delivery })
}

interface Verified {
  readonly mount: StoredMount
  readonly hook: HookManifest
  readonly url: MountUrl
  readonly body: Uint8Array
}

/** Throws SIGNATURE_INVALID, and UNAVAILABLE where the server cannot tell. */
async function verify(
  { hooks, tokens, limits, system }: Gateway,
  { request, binding }: Incoming,
  { mount, hook, url, body }: Verified,
): Promise<void> {
  const { publicUrl } = mount
  const rejection = await verifySignature(
    { secret: (name) => hooks!.secret(name), verifyToken: (token) => tokens.verify(token) },
    hook.verify!,
    {
      headers: request.headers,
      body,
      url: publicUrl === null ? null : publicUrl + url.whole,
      nowMillis: system.nowMillis(),
    },
  )
  if (rejection === null) return
  limits?.failures.charge(peerOf(binding))
  const detail = `${hook.name} of the mount ${mount.name}: ${SIGNATURE_REJECTIONS[rejection]}`
  throw new Fault('SIGNATURE_INVALID', { detail })
}

interface Stored {
  readonly hooks: HookPorts
  readonly mount: StoredMount
  readonly release: Release
  readonly delivery: HookDelivery
}

/**
 * Returns the response of a handler; null if the answer is that of an accepted delivery, as for
 * a result that is not kept and for work that an operator has canceled. Throws FUNCTION_FAILED
 * where the handler failed, so that the service tries again.
 */
function resultOf(
  { plainForms }: Gateway,
  { ended, release }: { readonly ended: EndedWork; readonly release: Release },
): Response | null {
  const { state, function: name, resultText } = ended
  if (state === 'failed') throw new Fault('FUNCTION_FAILED', { detail: 'the handler of the hook' })
  const definition = release.functions.get(name)
  if (resultText === null || definition === undefined) return null
  const answer = renderResult(resultText, { plainForms, definition, caching: 'none' })
  const { status, headers, body } = answer
  return new Response(body, { status, headers: [...headers] })
}

async function store(
  gateway: Gateway,
  incoming: Incoming,
  { hooks, mount, release, delivery }: Stored,
): Promise<Response> {
  const { system, counts } = gateway
  const { requestId, trace, request } = incoming
  const { hook } = delivery
  const invocationId = system.ids.make('ivc')
  incoming.invocationId = invocationId
  const call = { release, hook, context: { requestId, invocationId }, trace }
  const fields = deliveryFields(delivery)
  const event = hook.hasOnce
    ? await hooks.inbox.eventOf({
        ...call,
        arguments: withJson(new Map([['delivery', fields]])),
        signal: request.signal,
      })
    : digestEvent(delivery)
  const scheduledId = system.ids.make('sch')
  const accepted = await hooks.inbox.accept({
    ...call,
    ...hooks.eventIds({ mount: mount.name, route: hook.name, event }),
    mount: mount.name,
    event,
    scheduledId,
    arguments: deliveryArguments(fields, { id: scheduledId, nowMicros: system.nowMicros() }),
  })
  counts.delivered(accepted.replayed)
  if (hook.reply === 'result') {
    // The body is stored.
    incoming.bodyMemory?.release()
    const { signal } = request
    const ended = await hooks.inbox.endOf(accepted, { release, hook, signal })
    const answer = ended === null ? null : resultOf(gateway, { ended, release })
    if (answer !== null) return answer
  }
  const body: HookAccepted = {
    version: 1,
    status: 'accepted',
    requestId,
    deliveryId: accepted.scheduledId as HookAccepted['deliveryId'],
  }
  return Response.json(body, { status: 202 })
}
