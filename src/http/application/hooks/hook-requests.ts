/** A request of another service, and the delivery that it becomes. */
import { sha256 } from '../../../system/digests.ts'
import { encodeBase64Url } from '../../../value/base64url.ts'
import type { HookManifest } from '../../../value/http/routes.ts'
import { Timestamp, type Value, type ValueObject } from '../../../value/values.ts'

/** A verified request below a mount. */
export interface HookDelivery {
  readonly hook: HookManifest
  readonly method: string
  /** The path below the mount, without its secret part. */
  readonly path: string
  readonly search: string
  readonly headers: Pick<Headers, 'get'>
  readonly body: Uint8Array
}

/** Returns the fields that all deliveries of an event may have in common, without JSON. */
export function deliveryFields(given: HookDelivery): ValueObject {
  const { hook, method, path, search, headers, body } = given
  const named: [string, string][] = []
  for (const name of hook.headers) {
    const value = headers.get(name)
    if (value !== null) named.push([name, value.toWellFormed()])
  }
  const query = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(search)) {
    // It is a name that no object of JavaScript should have.
    if (name !== '__proto__' && !query.has(name)) query.set(name, value)
  }
  return new Map<string, Value>([
    ['method', method],
    ['path', path === '' ? '/' : path],
    ['headers', new Map(named)],
    ['query', query],
    ['body', body],
  ])
}

/** Returns the arguments of a handler, as they are stored. */
export function deliveryArguments(
  fields: ValueObject,
  { id, nowMicros }: { readonly id: string; readonly nowMicros: bigint },
): ValueObject {
  const own: [string, Value][] = [
    ['id', id],
    ['receivedAt', new Timestamp(nowMicros)],
  ]
  return new Map([['delivery', new Map([...own, ...fields])]])
}

/**
 * Returns the event of a hook without `once`: requests with the same path and body are repeats. No
 * signature covers the path, so that another spelling of it must not make a copy a new event.
 */
export function digestEvent({ path, body }: Pick<HookDelivery, 'path' | 'body'>): string {
  const spelled = path.split('/').map(decodeURIComponent).map(encodeURIComponent).join('/')
  return `sha256:${encodeBase64Url(sha256(`${spelled.length} ${spelled}`, body))}`
}
