/** Operation IDs of events, which decide that two deliveries are the same event. */
import type { Keyring } from '../../storage/keyring.ts'
import { hmac } from '../../system/digests.ts'
import { encodeUlid, type OperationId } from '../../value/ids.ts'

export interface EventName {
  readonly mount: string
  readonly route: string
  /** The ID that `once` returned, or the digest of the request. */
  readonly event: string
}

export interface EventIds {
  readonly operationId: OperationId
  /** The IDs under other keys of the keyring: a rotation must not make old events new. */
  readonly earlierIds: readonly OperationId[]
}

/** Returns the IDs of an event. They are keyed, so that no application can use one beforehand. */
export function eventIds(keyring: Keyring, name: EventName): EventIds {
  const idOf = (keyId: string) => eventId(keyring.derive(keyId, 'http-event'), name)
  const others = keyring.ids.filter((id) => id !== keyring.activeId)
  return { operationId: idOf(keyring.activeId), earlierIds: others.map(idOf) }
}

/**
 * Returns `opn_` and 120 bits of the digest. The time in it is before the year 2005, and so before
 * that of every other ID: the filter of known operation IDs takes greater ones for new
 * (documents/operation-ids.ts), and would have to look up every Mutation after one from the future.
 */
function eventId(key: Uint8Array, { mount, route, event }: EventName): OperationId {
  const digest = hmac('sha256', key, JSON.stringify([mount, route, event]))
  return `opn_${encodeUlid(digest.readUIntBE(0, 5), digest.subarray(5, 15))}` as OperationId
}
