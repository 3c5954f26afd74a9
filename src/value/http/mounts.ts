/** Mounts of the routes of `http.ts`: names and bounds (contract/wire.md, HTTP mounts). */

export const MOUNT_NAME = /^[a-z][a-z0-9-]{0,62}$/
/** @limit HTTP mounts: mounts of an Environment */
export const MOUNTS_MAX = 100
/** @limit HTTP mounts: requests a second of a mount, unless the mount has a rate of its own */
export const MOUNT_RATE_DEFAULT = 50
export const MOUNT_RATE_MAX = 10_000
/** The prefix of the secret part of the path of a mount. */
export const MOUNT_TOKEN_PREFIX = 'hkt_'
export const MOUNT_TOKEN = /^hkt_[A-Za-z0-9_-]{43}$/
/** The mount that `svc dev` makes. */
export const LOCAL_MOUNT = 'dev'
const PUBLIC_URL_MAX = 512

/** Returns the path of the application origin below which a mount is. */
export function mountPath(name: string): string {
  return `/v1/http/${name}`
}

/** Returns whether the text is a URL that the paths of the application origin can follow. */
export function isPublicUrl(text: string): boolean {
  if (text.length > PUBLIC_URL_MAX || !URL.canParse(text)) return false
  const { protocol, origin, pathname } = new URL(text)
  if (protocol !== 'https:' && protocol !== 'http:') return false
  // The canonical form: without credentials, a query, a fragment and a slash at the end.
  return text === origin + pathname.replace(/\/$/, '')
}
