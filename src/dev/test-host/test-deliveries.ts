/** Deliveries of other services to the hooks of a test environment. */
import type { Engine } from '../../engine/engine.ts'
import type { InvocationContext } from '../../engine/invocations/invocation.ts'
import { Fault } from '../../errors/fault.ts'
import {
  deliveryArguments,
  deliveryFields,
  digestEvent,
} from '../../http/application/hooks/hook-requests.ts'
import { eventIds } from '../../product/http-mounts/event-ids.ts'
import { SIGNATURE_REJECTIONS } from '../../product/http-mounts/signatures/signed-requests.ts'
import { signRequest } from '../../product/http-mounts/signatures/signing.ts'
import { verifySignature } from '../../product/http-mounts/signatures/verification.ts'
import type { Keyring } from '../../storage/keyring.ts'
import { sha256 } from '../../system/digests.ts'
import type { System } from '../../system/system.ts'
import { withJson } from '../../value/http/delivery-json.ts'
import { mountPath } from '../../value/http/mounts.ts'
import { matchRoute } from '../../value/http/paths.ts'
import type { HookManifest } from '../../value/http/routes.ts'
import { Secret } from '../../value/secret.ts'
import type { DeliverRequest, StoredDelivery } from '../../wire/test-kit.ts'
import type { TestRelease } from './workspace-releases.ts'

const MOUNT = 'test'
const ORIGIN = 'https://hooks.test'

export interface DeliveryParts {
  readonly engine: Pick<Engine, 'inbox'>
  readonly keyring: Keyring
  readonly system: Pick<System, 'ids' | 'nowMillis' | 'nowMicros'>
  readonly seed: number
  /** Returns a secret that the test gives; null for another one. */
  readonly secret: (name: string) => Secret | null
}

interface Received {
  readonly hook: HookManifest
  readonly method: HookManifest['methods'][number]
  readonly headers: Headers
  readonly body: Uint8Array
  readonly path: string
  readonly search: string
}

/**
 * Verifies and stores an event as a server does; its handler then is work that is due. Rejects with
 * REQUEST_INVALID, LIMIT_EXCEEDED, SIGNATURE_INVALID, and FUNCTION_FAILED for `once`.
 */
export async function storeDelivery(
  parts: DeliveryParts,
  { http = [], ...release }: TestRelease,
  { context, request }: { readonly context: InvocationContext; readonly request: DeliverRequest },
): Promise<StoredDelivery> {
  const { engine, keyring, system } = parts
  const received = receivedOf(http, request)
  await verify(parts, received)
  const { hook } = received
  const call = { release: { ...release, http }, hook, context }
  const fields = deliveryFields(received)
  const event = hook.hasOnce
    ? await engine.inbox.eventOf({ ...call, arguments: withJson(new Map([['delivery', fields]])) })
    : digestEvent(received)
  const scheduledId = system.ids.make('sch')
  const accepted = await engine.inbox.accept({
    ...call,
    ...eventIds(keyring, { mount: MOUNT, route: hook.name, event }),
    mount: MOUNT,
    event,
    scheduledId,
    arguments: deliveryArguments(fields, { id: scheduledId, nowMicros: system.nowMicros() }),
  })
  return { deliveryId: accepted.scheduledId, replayed: accepted.replayed }
}

function receivedOf(
  routes: NonNullable<TestRelease['http']>,
  { hook: name, headers, body: text, path: given }: DeliverRequest,
): Received {
  const hooks = routes.filter((route) => route.kind === 'hook')
  const hook = hooks.find((each) => each.name === name)
  if (hook === undefined) {
    const names = hooks.map((each) => each.name).join(', ')
    const known = names === '' ? '' : ` It has ${names}.`
    throw new Fault('REQUEST_INVALID', { detail: `http.ts has no hook ${name}.${known}` })
  }
  const [path = '', search = ''] = (given ?? hook.path).split(/(?=\?)/)
  const method = hook.methods.includes('POST') ? 'POST' : hook.methods[0]!
  const isOther = matchRoute([hook], method, path)?.route !== hook
  if (isOther || (given === null && hook.path.includes('/:'))) {
    const detail = `give \`path\`: the hook ${name} is at ${hook.path}`
    throw new Fault('REQUEST_INVALID', { detail })
  }
  const body = Buffer.from(text, 'base64')
  if (body.length > hook.maximumBytes) {
    const detail = `the hook ${name} takes ${hook.maximumBytes} bytes`
    throw new Fault('LIMIT_EXCEEDED', { detail })
  }
  return { hook, method, headers: new Headers(headers), body, path, search }
}

/**
 * Adds the signature, unless the test gives one, and verifies it. The identity of a token is not
 * checked: only its provider could issue one.
 */
async function verify(
  { system, seed, secret }: DeliveryParts,
  { hook: { verify }, headers, body, path, search }: Received,
): Promise<void> {
  if (verify === null || verify.scheme === 'jwt') return
  const nowMillis = system.nowMillis()
  const url = `${ORIGIN}${mountPath(MOUNT)}${path === '/' ? '' : path}${search}`
  const id = `test_${system.ids.make('req').slice('req_'.length)}`
  // A text that every scheme takes.
  const own = () => new Secret(`whsec_${sha256(`hooks/${seed}`).toString('base64')}`)
  const used = secret(verify.secret) ?? own()
  const signed = signRequest(verify, used, { url, headers, body, nowMillis, id })
  for (const [name, value] of Object.entries(signed.headers)) {
    if (!headers.has(name)) headers.set(name, value)
  }
  const port = { secret: () => used, verifyToken: () => Promise.reject() }
  const request = { headers, body, url: signed.url, nowMillis }
  const rejection = await verifySignature(port, verify, request)
  if (rejection === null) return
  throw new Fault('SIGNATURE_INVALID', { detail: `${SIGNATURE_REJECTIONS[rejection]}.` })
}
