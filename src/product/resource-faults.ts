/**
 * Faults about the resources of a Product. Their violations name the member of the request and the
 * state that the resource must have, or has, but never an identifier, a name or a stored value.
 */
import { Fault } from '../errors/fault.ts'

export interface ResourceFaultOptions {
  /** The member of the request that names the resource, such as `releaseId`. */
  readonly path: string
  /** The resource that the member must name, and its state. */
  readonly rule: string
  /** Text for the log only. */
  readonly detail: string
}

/** Returns a PRODUCT_NOT_FOUND. */
export function notFound({ path, rule, detail }: ResourceFaultOptions): Fault {
  return new Fault('PRODUCT_NOT_FOUND', { detail, violations: [{ path, rule }] })
}

/** Returns a PRODUCT_STATE_CONFLICT. */
export function stateConflict({ path, rule, detail }: ResourceFaultOptions): Fault {
  return new Fault('PRODUCT_STATE_CONFLICT', { detail, violations: [{ path, rule }] })
}

/** Returns a PRODUCT_STATE_CONFLICT for one resource more than an Environment may have. */
export function limitReached(path: string, most: number, resources: string): Fault {
  const rule = `one that exists: the Environment has ${most} ${resources}, its maximum`
  return stateConflict({ path, rule, detail: `${most} ${resources}` })
}

/** Returns a PRODUCT_NOT_FOUND for a Release. */
export function releaseNotFound(releaseId: string, path = 'releaseId'): Fault {
  return notFound({ path, rule: 'a Release of this Environment', detail: releaseId })
}

/** Returns a PRODUCT_NOT_FOUND for a Channel. */
export function channelNotFound(name: string, path = 'channel'): Fault {
  return notFound({ path, rule: 'a Channel that is bound', detail: `channel ${name}` })
}
