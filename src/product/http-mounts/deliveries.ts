/** Deliveries of other services for operators: pages, one with its content, and replays. */
import type { Engine } from '../../engine/engine.ts'
import { handlerKind } from '../../engine/inbox/inbox.ts'
import {
  hasContent,
  type ScheduledSummary,
  type ScheduledWork,
} from '../../engine/scheduled-work/scheduled-documents.ts'
import { type Delivery, deliveryOf } from '../../engine/scheduling/deliveries.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { encodeBase64Url } from '../../value/base64url.ts'
import type { HookManifest } from '../../value/http/routes.ts'
import type { Id, OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import type { ScheduledState } from '../../value/scheduling/scheduled-work.ts'
import { decodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { DeliveryContent, DeliveryField } from '../../wire/http/deliveries.ts'
import {
  type Applied,
  applyOnce,
  type Intent,
  isApplied,
} from '../idempotency/idempotency-records.ts'
import type { ChangePorts, LoadedRelease, RootPort } from '../ports.ts'
import { notFound, stateConflict } from '../resource-faults.ts'
import { failingAsProduct, operationMicros } from '../schedules/scheduled-work.ts'
import { resolveTarget, type TargetPorts, unservedReason } from '../serving/target-resolution.ts'
import { requireMount } from './mounts.ts'

interface DeliveryPorts extends RootPort {
  readonly engine: {
    readonly scheduler: Pick<Engine['scheduler'], 'deliveries' | 'find' | 'rerun'>
  }
}

/** Stored as JSON with its idempotency record, so times are decimal text. */
export type DeliveryState = DeliveryField

export interface ListedDeliveries {
  readonly items: readonly DeliveryState[]
  readonly nextId: string | null
}

export interface DeliveriesInput {
  readonly mount: string
  /** Null for all states. */
  readonly state: ScheduledState | null
  /** Null for all routes. */
  readonly route: string | null
  readonly after: string | null
  readonly limit: number
}

/** Returns a page, the newest first. Rejects with PRODUCT_NOT_FOUND and PRODUCT_UNAVAILABLE. */
export async function listDeliveries(
  ports: DeliveryPorts,
  { after: afterId, ...query }: DeliveriesInput,
): Promise<ListedDeliveries> {
  const { root, engine } = ports
  root.control.read((reader) => requireMount(reader, query.mount))
  const page = await failingAsProduct(() => engine.scheduler.deliveries.list({ ...query, afterId }))
  return { items: page.items.map(stateOf), nextId: page.nextId }
}

interface NamedDelivery {
  readonly mount: string
  readonly deliveryId: string
}

/**
 * Returns one delivery, with its content if the caller may see that. Rejects as `listDeliveries`.
 */
export async function readDelivery(
  ports: DeliveryPorts,
  { mayReadContent, ...named }: NamedDelivery & { readonly mayReadContent: boolean },
): Promise<DeliveryState & { readonly content?: DeliveryContent | null }> {
  const work = await findDelivery(ports, named)
  const state = stateOf(deliveryOf(work))
  return mayReadContent ? { ...state, content: contentOf(work) } : state
}

export interface ReplayInput extends NamedDelivery {
  readonly operationId: OperationId
  readonly requestId: RequestId
}

/**
 * Makes a failed delivery run again, once for each Operation ID, with the handler of its hook in
 * the Release that the mount serves now. Rejects with PRODUCT_NOT_FOUND, with
 * PRODUCT_STATE_CONFLICT for a delivery in another state and where the hook or the Release is gone,
 * with PRODUCT_OPERATION_REUSED, PRODUCT_INVALID and PRODUCT_UNAVAILABLE.
 */
export async function replayDelivery(
  ports: DeliveryPorts & ChangePorts & TargetPorts,
  actor: Actor,
  { mount, deliveryId, operationId, requestId }: ReplayInput,
): Promise<Applied<DeliveryState>> {
  const changedAtMicros = operationMicros(ports, operationId)
  const replayed = isApplied(ports, operationId)
    ? null
    : await replayOnce(ports, { mount, deliveryId, operationId })
  const intent: Intent = {
    operationId,
    kind: 'http_mount.replay' as const,
    request: { mount, deliveryId },
    changedAtMicros,
    subject: deliveryId,
    requestId,
  }
  return applyOnce(ports, actor, intent, () => {
    if (replayed === null) throw unknownDelivery(deliveryId)
    // Deliveries have no revisions.
    return { result: stateOf(replayed), revision: 1n }
  })
}

async function replayOnce(
  ports: DeliveryPorts & TargetPorts,
  { operationId, ...named }: Omit<ReplayInput, 'requestId'>,
): Promise<Delivery> {
  const found = await findDelivery(ports, named)
  // A crash may have lost the record of the replay, which is not done again.
  if (found.rerunBy === operationId) return deliveryOf(found)
  if (found.state !== 'failed') throw notFailed(found)
  const release = await currentRelease(ports, named)
  const hook = hookOf(release, found)
  const next = {
    function: hook.function,
    kind: handlerKind(release, hook),
    releaseId: release.releaseId,
    rerunBy: operationId,
  }
  const { scheduler } = ports.engine
  const changed = await failingAsProduct(() => scheduler.rerun(named.deliveryId, next))
  if (changed === null) throw unknownDelivery(named.deliveryId)
  const { work, hasChanged } = changed
  if (!hasChanged && work.rerunBy !== operationId) throw notFailed(work)
  // Only a delivery that succeeded drops its content.
  return { ...work, hasContent: hasContent(found) }
}

async function findDelivery(
  { root, engine }: DeliveryPorts,
  { mount, deliveryId }: NamedDelivery,
): Promise<ScheduledWork> {
  root.control.read((reader) => requireMount(reader, mount))
  const work = await failingAsProduct(() => engine.scheduler.find(deliveryId))
  if (work?.http?.mount !== mount) throw unknownDelivery(deliveryId)
  return work
}

/** Codes of a target that serves nothing. */
const UNSERVED = ['RELEASE_RETIRED', 'TARGET_DENIED', 'TARGET_NOT_FOUND'] as const
const MOUNTED = { scopes: ['workspace'] } as const

/** Returns the Release that the mount serves, of several the one that the delivery belongs to. */
async function currentRelease(
  ports: RootPort & TargetPorts,
  { mount: name, deliveryId }: NamedDelivery,
): Promise<LoadedRelease> {
  const { target } = ports.root.control.read((reader) => requireMount(reader, name))
  const unserved = unservedReason(ports)
  if (unserved !== null) throw servesNothing(unserved)
  const affinity = { affinity: () => deliveryId }
  try {
    return await resolveTarget(ports, MOUNTED, target, affinity)
  } catch (error) {
    if (isFault(error, ...UNSERVED)) throw servesNothing(`${target}: ${error.detail ?? error.code}`)
    throw new Fault('PRODUCT_UNAVAILABLE', { detail: target, cause: error })
  }
}

function hookOf({ http = [], releaseId }: LoadedRelease, { http: request }: ScheduledSummary) {
  const name = request!.route
  const hook = http.find((route): route is HookManifest => {
    return route.kind === 'hook' && route.name === name
  })
  if (hook !== undefined) return hook
  const rule = 'a delivery whose hook is in the Release that the mount serves'
  throw stateConflict({ path: 'scheduledId', rule, detail: `${name} is not in ${releaseId}` })
}

function servesNothing(detail: string): Fault {
  return stateConflict({ path: 'mount', rule: 'a mount whose target serves a Release', detail })
}

function notFailed({ scheduledId, state }: ScheduledSummary): Fault {
  const rule = `a delivery that has failed; this one is ${state}`
  return stateConflict({ path: 'scheduledId', rule, detail: `${scheduledId} is ${state}` })
}

function unknownDelivery(deliveryId: string): Fault {
  const rule = 'a delivery of the mount that is still listed'
  return notFound({ path: 'scheduledId', rule, detail: deliveryId })
}

function stateOf(delivery: Delivery): DeliveryState {
  const { http, finishedAtMicros, lastErrorCode, lastErrorMessage } = delivery
  const { mount, route, event, method, path, bytes } = http!
  return {
    deliveryId: delivery.scheduledId as Id<'sch'>,
    mount,
    route,
    event,
    method,
    path,
    bodyBytes: bytes,
    receivedAtMicros: String(delivery.createdAtMicros),
    state: delivery.state,
    function: delivery.function,
    releaseId: delivery.releaseId as ReleaseId,
    attempts: delivery.attempts,
    lastErrorCode,
    lastErrorMessage,
    finishedAtMicros: finishedAtMicros === null ? null : String(finishedAtMicros),
    hasContent: delivery.hasContent,
  }
}

function contentOf(work: ScheduledWork): DeliveryContent | null {
  if (!hasContent(work)) return null
  const delivery = (decodeStored(work.argumentsText) as ValueObject).get('delivery') as ValueObject
  const texts = (name: string) =>
    Object.fromEntries(delivery.get(name) as ReadonlyMap<string, string>)
  return {
    headers: texts('headers'),
    query: texts('query'),
    body: encodeBase64Url(delivery.get('body') as Uint8Array),
  }
}
