/** The URL of a request below a mount. */

const PREFIX = '/v1/http/'

export interface MountUrl {
  /** The path and the query, as they were received. */
  readonly whole: string
  /** The first segment; it is not checked. */
  readonly mount: string
  /** The path behind the mount: empty, or with a slash at its start. */
  readonly rest: string
  /** The query with its question mark; empty for none. */
  readonly search: string
}

/** Returns whether a path is below a mount. */
export function isMountPath(path: string): boolean {
  return path.startsWith(PREFIX)
}

/** Splits a URL whose path is below a mount. */
export function mountUrlOf(url: string): MountUrl {
  const whole = url.slice(url.indexOf('/', url.indexOf('://') + 3)).split('#', 1)[0]!
  const query = whole.indexOf('?')
  const path = query === -1 ? whole : whole.slice(0, query)
  const slash = path.indexOf('/', PREFIX.length)
  return {
    whole,
    mount: path.slice(PREFIX.length, slash === -1 ? undefined : slash),
    rest: slash === -1 ? '' : path.slice(slash),
    search: query === -1 ? '' : whole.slice(query),
  }
}
